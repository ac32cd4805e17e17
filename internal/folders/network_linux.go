package folders

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Magic numbers of statfs(2), for what the table of mounts does not show.
var networkMagic = map[int64]string{
	0x6969: "nfs", 0x517b: "smb", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x01021997: "9p", 0x5346414f: "afs", 0x00c36400: "ceph",
	0x73757245: "coda", 0x564c: "ncpfs", 0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x7461636f: "ocfs2", 0x01161970: "gfs2", 0x19830326: "beegfs",
}

// Network returns the kind of network file system that the folder is on, or "".
func Network(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", err
	}
	if kind := networkMagic[int64(st.Type)&0xffffffff]; kind != "" {
		return kind, nil
	}
	// All file systems in user space have one number: the name is in the table of mounts.
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	kind, err := mountKind(f, dir)
	if err != nil || !isNetworkKind(kind) {
		return "", err
	}
	return kind, nil
}

// mountKind returns the type of the file system that a folder is on, from a table as in proc_pid_mountinfo(5).
func mountKind(table io.Reader, dir string) (string, error) {
	kind, longest := "", -1
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(types) < 1 {
			continue
		}
		point := unescapeMount(fields[4])
		if len(point) >= longest && (point == "/" || dir == point || strings.HasPrefix(dir, point+"/")) {
			kind, longest = types[0], len(point) // of two at one place the later one hides the earlier
		}
	}
	return kind, lines.Err()
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
