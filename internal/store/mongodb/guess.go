package mongodb

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// A small turn waits for three commands, one after the other: it ends, it reads a preview, it claims. A preview reads more tasks than its turn
// claims. So the handle guesses what the next turn of the instance will claim. That turn ends and claims with one command, and reads its
// preview at the same time. Then it claims by the preview like any other turn, as if the guessed tasks were still queued. It keeps those that it
// chooses, and gives the others back before anybody learns of them. So a guess never decides what a node gets.
//
// A preview that is read at the same time may miss a child that is added just before the end of its parent is written. If such a preview has
// children, the turn reads them again. If it has none, the marks of the ended tasks stay until the next preview has none either. Sweeps
// find them if no turn follows.

// A guess is what a turn leaves to the next one of its instance.
type guess struct {
	at     time.Time
	queue  queueDoc      // as the turn knew it
	docs   []taskDoc     // what waits in it, in the order in which it is likely to be claimed
	off    []wire.Change // that take marks off,
	unsure []wire.Change // and those that do once a preview finds nothing that waits for their tasks
}

// guessing is what a turn makes of a guess.
type guessing struct {
	guess
	token   bson.ObjectID              // of all claims of the turn
	changes []wire.Change              // that are written with the endings
	mine    map[bson.ObjectID]*taskDoc // what these claimed and the turn has not chosen, as it was queued
}
