PRAGMA application_id = 1414559596;
PRAGMA user_version = 9;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, plan TEXT, assignee TEXT, created INTEGER NOT NULL, spec TEXT NOT NULL
, estimate TEXT);
INSERT INTO tasks VALUES(0,'1',NULL,NULL,1795740968688000000,'{"name":"Design the parser","description":"Read the format.\nWrite down its fields.","metadata":{"claude":{"activeForm":"Designing the parser"}}}',NULL);
INSERT INTO tasks VALUES(1,'2',NULL,'worker-1',1795740968688000000,'{"name":"Write the parser","assignee":"worker-1","metadata":{"claude":{"activeForm":"Writing the parser","metadata":{"area":"core"}}}}',NULL);
INSERT INTO tasks VALUES(2,'3',NULL,NULL,1795740968688000000,'{"name":"Release","description":"Ship it","metadata":{"claude":{"activeForm":"Releasing"}}}',NULL);
CREATE TABLE bodies (
    key INTEGER PRIMARY KEY, version INTEGER NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL
, holder TEXT, took TEXT);
INSERT INTO bodies VALUES(0,1,1795740968688000000,'{"state":{"status":"done"},"attempt":0,"finishedAt":"2026-11-27T00:56:08.688Z"}',NULL,NULL);
INSERT INTO bodies VALUES(1,1,1795740968688000000,'{"state":{"status":"in_progress","claim":{"actor":"worker-1"}},"attempt":0,"startedAt":"2026-11-27T00:56:08.688Z"}',NULL,NULL);
INSERT INTO bodies VALUES(2,1,1795740968688000000,'{"state":{"status":"todo"},"attempt":0}',NULL,NULL);
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY, parent INTEGER, phase INTEGER NOT NULL, work INTEGER NOT NULL, gate_state INTEGER NOT NULL,
    opens INTEGER NOT NULL, gate_trigger INTEGER NOT NULL, entry INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
    dependencies_open INTEGER NOT NULL, dependencies_done INTEGER NOT NULL, dependencies_skipped INTEGER NOT NULL,
    dependencies_failed INTEGER NOT NULL, subtasks_open INTEGER NOT NULL, subtasks_finished INTEGER NOT NULL,
    subtasks_failed INTEGER NOT NULL, undecided INTEGER NOT NULL
);
INSERT INTO nodes VALUES(0,NULL,5,1,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO nodes VALUES(1,NULL,1,1,1,0,0,0,2,9223372036854775807,0,1,0,0,0,0,0,0);
INSERT INTO nodes VALUES(2,NULL,0,1,0,1,0,0,2,9223372036854775807,1,0,0,0,0,0,0,0);
CREATE TABLE calls (
    slot INTEGER PRIMARY KEY, id TEXT NOT NULL, origin TEXT NOT NULL, spec TEXT NOT NULL, body TEXT NOT NULL
, is_running INTEGER NOT NULL DEFAULT 0, tool TEXT);
CREATE TABLE dependencies (
    task INTEGER NOT NULL, dependency INTEGER NOT NULL, PRIMARY KEY (task, dependency)
) WITHOUT ROWID;
INSERT INTO dependencies VALUES(1,0);
INSERT INTO dependencies VALUES(2,1);
CREATE TABLE labels (task INTEGER NOT NULL, label TEXT NOT NULL, PRIMARY KEY (task, label)) WITHOUT ROWID;
CREATE TABLE applied (key INTEGER PRIMARY KEY, spec TEXT NOT NULL);
INSERT INTO applied VALUES(0,'{"imported":{"claude list":{"assignee":null,"dependencies":[],"description":"Read the format.\nWrite down its fields.","metadata.claude":{"activeForm":"Designing the parser"},"name":"Design the parser","status":"done"}}}');
INSERT INTO applied VALUES(1,'{"imported":{"claude list":{"assignee":"worker-1","dependencies":["1"],"description":null,"metadata.claude":{"activeForm":"Writing the parser","metadata":{"area":"core"}},"name":"Write the parser","status":"in_progress"}}}');
INSERT INTO applied VALUES(2,'{"imported":{"claude list":{"assignee":null,"dependencies":["2"],"description":"Ship it","metadata.claude":{"activeForm":"Releasing"},"name":"Release","status":"todo"}}}');
CREATE TABLE deleted_ids (id TEXT PRIMARY KEY, plan TEXT) WITHOUT ROWID;
CREATE TABLE plans (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, run TEXT, task INTEGER, task_id TEXT,
    data TEXT NOT NULL, ready TEXT
);
INSERT INTO events VALUES(1,1795740968692000000,'user@host',NULL,0,'1','{"type":"created","name":"Design the parser"}',NULL);
INSERT INTO events VALUES(2,1795740968692000000,'user@host',NULL,1,'2','{"type":"created","name":"Write the parser","dependencies":["1"]}',NULL);
INSERT INTO events VALUES(3,1795740968692000000,'user@host',NULL,2,'3','{"type":"created","name":"Release","dependencies":["2"]}',NULL);
INSERT INTO events VALUES(4,1795740968692000000,'user@host',NULL,0,'1','{"type":"status","from":"todo","to":"done","cause":"import","text":"imported from claude list","attempt":0}',NULL);
INSERT INTO events VALUES(5,1795740968692000000,'user@host',NULL,1,'2','{"type":"status","from":"todo","to":"in_progress","cause":"import","text":"imported from claude list","attempt":0}',NULL);
CREATE TABLE counters (
    only INTEGER PRIMARY KEY CHECK (only = 0), revision INTEGER NOT NULL, next_key INTEGER NOT NULL, todo INTEGER NOT NULL,
    in_progress INTEGER NOT NULL, blocked INTEGER NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL, skipped INTEGER NOT NULL
);
INSERT INTO counters VALUES(0,5,3,1,1,0,1,0,0,0);
CREATE TABLE undo (
    revision INTEGER PRIMARY KEY, first INTEGER NOT NULL, actor TEXT NOT NULL, undoes INTEGER, undone_by INTEGER, image TEXT
);
INSERT INTO undo VALUES(5,1,'user@host',NULL,NULL,'{"created":[[0,2]]}');
CREATE TABLE pruned_runs (id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE requests (
    actor TEXT NOT NULL, request TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (actor, request)
) WITHOUT ROWID;
CREATE INDEX tasks_by_plan ON tasks(plan) WHERE plan IS NOT NULL;
CREATE INDEX tasks_by_assignee ON tasks(assignee) WHERE assignee IS NOT NULL;
CREATE INDEX nodes_by_parent ON nodes(parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_by_phase ON nodes(phase);
CREATE INDEX nodes_ready ON nodes(work, priority, due) WHERE phase = 0 AND gate_state = 1;
CREATE INDEX dependents ON dependencies(dependency, task);
CREATE INDEX labels_by_label ON labels(label, task);
CREATE INDEX events_by_task ON events(task) WHERE task IS NOT NULL;
CREATE INDEX undo_last ON undo(actor, revision) WHERE undoes IS NULL AND undone_by IS NULL;
CREATE INDEX runs_open ON runs(position)
    WHERE CASE WHEN json_valid(record) THEN coalesce(json_extract(record, '$.finishedAt'), json_extract(record, '$.recoveredAt')) END
    IS NULL;
CREATE INDEX events_of_checklists ON events(revision) WHERE substr(data, 1, 19) = '{"type":"checklist"';
CREATE INDEX leases ON bodies(holder) WHERE holder IS NOT NULL;
CREATE INDEX took ON bodies(took) WHERE took IS NOT NULL;
CREATE INDEX estimates ON tasks(estimate) WHERE estimate IS NOT NULL;
CREATE INDEX calls_running ON calls(slot) WHERE is_running;
CREATE INDEX calls_by_tool ON calls(tool);
COMMIT;
