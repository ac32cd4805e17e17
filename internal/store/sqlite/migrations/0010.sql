-- What its submitter said of a plan besides, JSON of planDef in submit.go; NULL: nothing.
ALTER TABLE plans ADD COLUMN def BLOB;
