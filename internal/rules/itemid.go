package rules

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/seed-1177d267/sluice/plan"
)

// ItemID derives the id of the item with the given index (from 0) of a foreach task: expanding a task twice names the same items.
// Items of one task ascend; a hash of the task's id takes the place of the process's bytes, so that those of two tasks differ.
func ItemID(of plan.TaskID, index int) plan.TaskID {
	h := fnv.New64a()
	_, _ = h.Write(of.ID[:])
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], h.Sum64())
	id := of.ID
	copy(id[4:9], sum[:5])
	id[9], id[10], id[11] = byte(index>>16), byte(index>>8), byte(index)
	return plan.TaskID{ID: id}
}

// ItemIndex returns the index that ItemID made an id of.
func ItemIndex(id plan.TaskID) int { return int(id.ID[9])<<16 | int(id.ID[10])<<8 | int(id.ID[11]) }
