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

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func queueList(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List queues, newest first", Args: exactly(0)}
	output := wideFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withStore(cmd.Context(), func(st store.Store) error {
			queues, err := st.Queues(cmd.Context())
			if err == nil {
				err = st.CountQueues(cmd.Context(), queues)
			}
			if err != nil {
				return err
			}
			sort.Slice(queues, func(x, y int) bool { return bytes.Compare(queues[x].ID.ID[:], queues[y].ID.ID[:]) > 0 })
			entries := make([]queueEntry, len(queues))
			for i := range queues {
				entries[i] = entryOfQueue(&queues[i])
			}
			if output.json() {
				return errors.Join(view.JSON(a.Stdout, entries), a.noteRefused(cmd.Context(), st))
			}
			t := view.Table{Head: []string{"QUEUE", "STATE", "PLUGIN", "THREADS", "ACTIVE", "QUEUED", "SORT"}, Paint: a.paint(a.Stdout).States(1)}
			nodes := slices.ContainsFunc(entries, func(e queueEntry) bool { return e.nodes() != "" })
			if nodes {
				t.Head = append(t.Head, "NODES")
			}
			lost := slices.ContainsFunc(entries, func(e queueEntry) bool { return e.OnLost != plan.OnLostDefault })
			if lost {
				t.Head = append(t.Head, "ON-LOST")
			}
			secret := slices.ContainsFunc(entries, func(e queueEntry) bool { return len(e.Secrets) > 0 })
			if secret {
				t.Head = append(t.Head, "SECRET")
			}
			kept := slices.ContainsFunc(entries, func(e queueEntry) bool { return e.keep() != "" })
			if kept {
				t.Head = append(t.Head, "KEEP")
			}
			if output.wide() {
				t.Head = append(t.Head, "ID")
			}
			for i := range entries {
				e := &entries[i]
				cells := []string{e.Name, e.State, e.Plugin, e.threads(), strconv.Itoa(e.Active), strconv.Itoa(e.Queued), string(e.Sort)}
				if nodes {
					cells = append(cells, e.nodes())
				}
				if lost {
					cells = append(cells, string(e.OnLost))
				}
				if secret {
					cells = append(cells, strings.Join(e.Secrets, ","))
				}
				if kept {
					cells = append(cells, e.keep())
				}
				if output.wide() {
					cells = append(cells, e.ID.String())
				}
				t.Add(cells...)
			}
			if err := t.Print(a.Stdout); err != nil {
				return err
			}
			return a.noteRefused(cmd.Context(), st)
		})
	}
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
