package cli

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
)

func queueList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List queues, newest first"}
	output := wideFlag(cmd)
	cmd.RunE = a.onStore(func(ctx context.Context, st store.Store, _ []string) error {
		queues, err := st.Queues(ctx)
		if err == nil {
			err = st.CountQueues(ctx, queues)
		}
		if err != nil {
			return err
		}
		sort.Slice(queues, func(x, y int) bool { return bytes.Compare(queues[x].ID.ID[:], queues[y].ID.ID[:]) > 0 })
		entries := api.Each(queues, entryOfQueue)
		if output.json() {
			return errors.Join(view.JSON(a.Stdout, entries), a.noteRefused(ctx, st))
		}
		more := api.Each(new(queueEntry).said(), func(s *[2]string) string { return strings.ToUpper(s[0]) })
		t := a.table(slices.Concat([]string{"QUEUE", "STATE", "PLUGIN", "THREADS", "ACTIVE", "QUEUED", "SORT"}, more, []string{"ID"})...)
		for i := range entries {
			e := &entries[i]
			row := []string{e.Name, e.State, e.Plugin, e.threads(), strconv.Itoa(e.Active), strconv.Itoa(e.Queued), string(e.Sort)}
			for _, s := range e.said() {
				row = append(row, s[1])
			}
			t.Add(append(row, e.ID.String())...)
		}
		t.DropEmpty(more...)
		if !output.wide() {
			t.Drop("ID")
		}
		if err := t.Print(a.Stdout); err != nil {
			return err
		}
		return a.noteRefused(ctx, st)
	})
	return cmd
}

// noteRefused names what other programs wrote into the store that no node can serve.
func (a *app) noteRefused(ctx context.Context, st store.Store) error {
	s, ok := st.(store.Refuser)
	if !ok {
		return nil
	}
	refused, err := s.Refused(ctx)
	for _, text := range refused {
		a.note("%s", text)
	}
	return err
}
