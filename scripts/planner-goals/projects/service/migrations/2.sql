-- The sessions are in cookies since version 3.
DROP TABLE legacy_sessions;
