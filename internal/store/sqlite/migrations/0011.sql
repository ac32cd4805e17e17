-- The files that plans came from, apart from plans, whose rows are written anew with each of their counts.
CREATE TABLE files (plan INTEGER PRIMARY KEY, text TEXT NOT NULL, dir TEXT NOT NULL);
