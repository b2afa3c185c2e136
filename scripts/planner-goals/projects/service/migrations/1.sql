CREATE TABLE visits (page TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE legacy_sessions (id TEXT PRIMARY KEY, data TEXT);
INSERT INTO visits VALUES ('home', 12), ('prices', 5);
INSERT INTO legacy_sessions VALUES ('s1', '{}'), ('s2', '{}');
