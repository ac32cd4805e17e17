package cli

import (
	"fmt"

	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// told prints warnings and notes on a file. As in a compiler's output, the place comes first.
func (a *app) told(kind string, found []textfile.Error) {
	for _, e := range found {
		e.Message = kind + ": " + e.Message
		fmt.Fprintln(a.Stderr, e.Error())
	}
}

// configured reads the file that one of Disbatch's processes is given. The file names the store, unless --store does. A flag that is given comes
// before a variable that may have been set long ago.
func (a *app) configured(path string, u config.User) (c *config.Config, err error) {
	if c, err = config.Read(path); err != nil {
		return c, asUsage(err)
	}
	if a.storeFlag != "" {
		return c, nil
	}
	if a.storeOfFile, err = c.URI(u); err != nil {
		return c, asUsage(err)
	}
	if _, named := a.DefaultStore(); named {
		a.note("SLUICE_STORE is not used, since --config names the store; to use it, give --store")
	}
	return c, nil
}

// readConfigFlag reads the file of --config, if one is given and names the store, for commands that
// need only the store. They connect as the user of Disbatch's web server. `config check` reports
// what is probably not meant in the file.
func (a *app) readConfigFlag() error {
	if a.configFlag == "" || a.storeFlag != "" || a.storeOfFile != "" {
		return nil
	}
	_, err := a.configured(a.configFlag, config.DisbatchWeb)
	return err
}
