-- How far tasks of an instance said they are, as JSON. It lies apart from the instance, which each beat writes.
CREATE TABLE progress (
  instance INTEGER PRIMARY KEY,
  said TEXT NOT NULL
);
