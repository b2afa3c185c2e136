PRAGMA application_id = 1414559596;
PRAGMA user_version = 9;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, plan TEXT, assignee TEXT, created INTEGER NOT NULL, spec TEXT NOT NULL
, estimate TEXT);
INSERT INTO tasks VALUES(0,'build','shop',NULL,1795740642486000000,'{"name":"build"}',NULL);
INSERT INTO tasks VALUES(1,'pack','shop',NULL,1795740642486000000,'{"name":"pack"}',NULL);
INSERT INTO tasks VALUES(2,'ship','shop',NULL,1795740642486000000,'{"name":"ship"}',NULL);
INSERT INTO tasks VALUES(3,'stamp','shop',NULL,1795740642486000000,'{"name":"stamp","cache":{"key":"''v1''"}}',NULL);
INSERT INTO tasks VALUES(4,'publish','shop',NULL,1795740642486000000,'{"name":"publish","approval":"required"}',NULL);
INSERT INTO tasks VALUES(5,'review','shop',NULL,1795740642486000000,'{"name":"review"}',NULL);
CREATE TABLE bodies (
    key INTEGER PRIMARY KEY, version INTEGER NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL
, holder TEXT, took TEXT);
INSERT INTO bodies VALUES(0,3,1795740642544000000,'{"state":{"status":"done"},"attempt":1,"startedAt":"2026-11-27T00:50:42.514Z","finishedAt":"2026-11-27T00:50:42.544Z","progress":{"took":"30ms"}}',NULL,'30ms');
INSERT INTO bodies VALUES(1,3,1795740642554000000,'{"state":{"status":"failed","error":"call `c2` (shell): `false; echo tried >> log; test -f fixed` exited with code 1"},"attempt":1,"startedAt":"2026-11-27T00:50:42.514Z","finishedAt":"2026-11-27T00:50:42.554Z"}',NULL,NULL);
INSERT INTO bodies VALUES(2,2,1795740642554000000,'{"state":{"status":"blocked","reason":{"type":"dependency","ids":[]}},"attempt":0}',NULL,NULL);
INSERT INTO bodies VALUES(3,3,1795740642543000000,'{"state":{"status":"done"},"attempt":1,"startedAt":"2026-11-27T00:50:42.525Z","finishedAt":"2026-11-27T00:50:42.543Z","progress":{"took":"18ms","cached":{"fingerprint":"f1bb523fd4059eef688556bb3f813f900436b70d0a0fbef7bbf516f34730d9ba.e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","at":"2026-11-27T00:50:42.543Z","results":{"c1":{"exitCode":0,"sandbox":{"level":"standard","network":"loopback"},"stderr":"","stdout":"","truncated":false}}}}}',NULL,'18ms');
INSERT INTO bodies VALUES(4,2,1795740642588000000,'{"state":{"status":"todo"},"context":{"approval":true},"attempt":0,"progress":{"opened":true,"granted":{"hash":"034482b0ac4d04ac446355028f8e9eafaa75dd89e999b4a40a4d732e97f6bc2a","by":"user@host","at":"2026-11-27T00:50:42.588Z","policy":"454c4f0b10f85ff5dbe1416c431dfa870e4708d2d81fbea2c537a5d1a9021fc2"}}}',NULL,NULL);
INSERT INTO bodies VALUES(5,1,1795740642486000000,'{"state":{"status":"todo"},"attempt":0}',NULL,NULL);
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY, parent INTEGER, phase INTEGER NOT NULL, work INTEGER NOT NULL, gate_state INTEGER NOT NULL,
    opens INTEGER NOT NULL, gate_trigger INTEGER NOT NULL, entry INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
    dependencies_open INTEGER NOT NULL, dependencies_done INTEGER NOT NULL, dependencies_skipped INTEGER NOT NULL,
    dependencies_failed INTEGER NOT NULL, subtasks_open INTEGER NOT NULL, subtasks_finished INTEGER NOT NULL,
    subtasks_failed INTEGER NOT NULL, undecided INTEGER NOT NULL
);
INSERT INTO nodes VALUES(0,NULL,5,0,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO nodes VALUES(1,NULL,6,0,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO nodes VALUES(2,NULL,2,0,2,2,0,0,2,9223372036854775807,0,0,0,1,0,0,0,0);
INSERT INTO nodes VALUES(3,NULL,5,0,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO nodes VALUES(4,NULL,0,0,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO nodes VALUES(5,NULL,0,1,1,0,0,0,2,9223372036854775807,0,1,0,0,0,0,0,0);
CREATE TABLE calls (
    slot INTEGER PRIMARY KEY, id TEXT NOT NULL, origin TEXT NOT NULL, spec TEXT NOT NULL, body TEXT NOT NULL
, is_running INTEGER NOT NULL DEFAULT 0, tool TEXT);
INSERT INTO calls VALUES(0,'c1','plan','{"toolName":"shell","args":{"command":"false\necho built >> log\n"}}','{"status":"succeeded","result":{"exitCode":0,"sandbox":{"level":"standard","network":"loopback"},"stderr":"","stdout":"","truncated":false},"attempts":1,"startedAt":"2026-11-27T00:50:42.514Z","finishedAt":"2026-11-27T00:50:42.544Z"}',0,'shell');
INSERT INTO calls VALUES(16777216,'c1','plan','{"toolName":"shell","args":{"command":"echo packed >> log"}}','{"status":"succeeded","result":{"exitCode":0,"sandbox":{"level":"standard","network":"loopback"},"stderr":"","stdout":"","truncated":false},"attempts":1,"startedAt":"2026-11-27T00:50:42.514Z","finishedAt":"2026-11-27T00:50:42.535Z"}',0,'shell');
INSERT INTO calls VALUES(16777217,'c2','plan','{"toolName":"shell","args":{"command":"false; echo tried >> log; test -f fixed"}}','{"status":"failed","result":{"exitCode":1,"sandbox":{"level":"standard","network":"loopback"},"stderr":"","stdout":"","truncated":false},"error":{"class":"exit_code","message":"`false; echo tried >> log; test -f fixed` exited with code 1"},"attempts":1,"failures":1,"startedAt":"2026-11-27T00:50:42.535Z","finishedAt":"2026-11-27T00:50:42.554Z"}',0,'shell');
INSERT INTO calls VALUES(33554432,'c1','plan','{"toolName":"shell","args":{"command":"false; echo shipped >> log"}}','{"status":"pending","attempts":0}',0,'shell');
INSERT INTO calls VALUES(50331648,'c1','plan','{"toolName":"shell","args":{"command":"false; echo stamped >> log"}}','{"status":"succeeded","result":{"exitCode":0,"sandbox":{"level":"standard","network":"loopback"},"stderr":"","stdout":"","truncated":false},"attempts":1,"startedAt":"2026-11-27T00:50:42.525Z","finishedAt":"2026-11-27T00:50:42.543Z"}',0,'shell');
INSERT INTO calls VALUES(67108864,'c1','plan','{"toolName":"shell","args":{"command":"false; echo published >> log"}}','{"status":"pending","attempts":0}',0,'shell');
CREATE TABLE dependencies (
    task INTEGER NOT NULL, dependency INTEGER NOT NULL, PRIMARY KEY (task, dependency)
) WITHOUT ROWID;
INSERT INTO dependencies VALUES(5,0);
INSERT INTO dependencies VALUES(2,1);
CREATE TABLE labels (task INTEGER NOT NULL, label TEXT NOT NULL, PRIMARY KEY (task, label)) WITHOUT ROWID;
CREATE TABLE applied (key INTEGER PRIMARY KEY, spec TEXT NOT NULL);
INSERT INTO applied VALUES(0,'{"has_id":true,"spec":{"name":"build"},"calls":[[null,{"toolName":"shell","args":{"command":"false\necho built >> log\n"}}]],"needs":[],"parent":null}');
INSERT INTO applied VALUES(1,'{"has_id":true,"spec":{"name":"pack"},"calls":[[null,{"toolName":"shell","args":{"command":"echo packed >> log"}}],[null,{"toolName":"shell","args":{"command":"false; echo tried >> log; test -f fixed"}}]],"needs":[],"parent":null}');
INSERT INTO applied VALUES(2,'{"has_id":true,"spec":{"name":"ship"},"calls":[[null,{"toolName":"shell","args":{"command":"false; echo shipped >> log"}}]],"needs":["pack"],"parent":null}');
INSERT INTO applied VALUES(3,'{"has_id":true,"spec":{"name":"stamp","cache":{"key":"''v1''"}},"calls":[[null,{"toolName":"shell","args":{"command":"false; echo stamped >> log"}}]],"needs":[],"parent":null}');
INSERT INTO applied VALUES(4,'{"has_id":true,"spec":{"name":"publish","approval":"required"},"calls":[[null,{"toolName":"shell","args":{"command":"false; echo published >> log"}}]],"needs":[],"parent":null}');
INSERT INTO applied VALUES(5,'{"has_id":true,"spec":{"name":"review"},"calls":[],"needs":["build"],"parent":null}');
CREATE TABLE deleted_ids (id TEXT PRIMARY KEY, plan TEXT) WITHOUT ROWID;
CREATE TABLE plans (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO plans VALUES('shop','{"name":"shop","header":{"version":1},"appliedAt":"2026-11-27T00:50:42.486Z"}');
CREATE TABLE runs (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
INSERT INTO runs VALUES(1,'20991cac-b050-4db8-b0b8-8cc57939000e','{"id":"20991cac-b050-4db8-b0b8-8cc57939000e","scope":["plan:shop"],"actor":"user@host","host":"host","startedAt":"2026-11-27T00:50:42.510Z","finishedAt":"2026-11-27T00:50:42.564Z","exit":1,"counts":{"blocked":1,"done":2,"failed":1}}');
CREATE TABLE events (
    revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, run TEXT, task INTEGER, task_id TEXT,
    data TEXT NOT NULL, ready TEXT
);
INSERT INTO events VALUES(1,1795740642486000000,'user@host',NULL,0,'build','{"type":"created","name":"build","plan":"shop"}',NULL);
INSERT INTO events VALUES(2,1795740642486000000,'user@host',NULL,1,'pack','{"type":"created","name":"pack","plan":"shop"}',NULL);
INSERT INTO events VALUES(3,1795740642486000000,'user@host',NULL,2,'ship','{"type":"created","name":"ship","dependencies":["pack"],"plan":"shop"}',NULL);
INSERT INTO events VALUES(4,1795740642486000000,'user@host',NULL,3,'stamp','{"type":"created","name":"stamp","plan":"shop"}',NULL);
INSERT INTO events VALUES(5,1795740642486000000,'user@host',NULL,4,'publish','{"type":"created","name":"publish","plan":"shop"}',NULL);
INSERT INTO events VALUES(6,1795740642486000000,'user@host',NULL,5,'review','{"type":"created","name":"review","dependencies":["build"],"plan":"shop"}',NULL);
INSERT INTO events VALUES(7,1795740642486000000,'user@host',NULL,NULL,NULL,'{"type":"applied","plan":"shop","created":6,"changed":0,"pruned":0}',NULL);
INSERT INTO events VALUES(8,1795740642486000000,'user@host',NULL,4,'publish','{"type":"status","from":"todo","to":"blocked","cause":"ask","reason":{"type":"approval","hash":"034482b0ac4d04ac446355028f8e9eafaa75dd89e999b4a40a4d732e97f6bc2a","policy":"454c4f0b10f85ff5dbe1416c431dfa870e4708d2d81fbea2c537a5d1a9021fc2"},"attempt":0}','[0,1,3]');
INSERT INTO events VALUES(9,1795740642510000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',NULL,NULL,'{"type":"run_started","scope":["plan:shop"]}',NULL);
INSERT INTO events VALUES(10,1795740642514000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',0,'build','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO events VALUES(11,1795740642514000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',0,'build','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO events VALUES(12,1795740642514000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',1,'pack','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO events VALUES(13,1795740642514000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',1,'pack','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO events VALUES(14,1795740642525000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',3,'stamp','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO events VALUES(15,1795740642525000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',3,'stamp','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO events VALUES(16,1795740642535000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',1,'pack','{"type":"call_ended","call":"c1","attempt":1,"status":"succeeded"}',NULL);
INSERT INTO events VALUES(17,1795740642535000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',1,'pack','{"type":"call_started","call":"c2","attempt":1,"start":1}',NULL);
INSERT INTO events VALUES(18,1795740642543000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',3,'stamp','{"type":"call_ended","call":"c1","attempt":1,"status":"succeeded"}',NULL);
INSERT INTO events VALUES(19,1795740642543000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',3,'stamp','{"type":"status","from":"in_progress","to":"done","cause":"report","attempt":1}',NULL);
INSERT INTO events VALUES(20,1795740642544000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',0,'build','{"type":"call_ended","call":"c1","attempt":1,"status":"succeeded"}',NULL);
INSERT INTO events VALUES(21,1795740642544000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',0,'build','{"type":"status","from":"in_progress","to":"done","cause":"report","attempt":1}','[5]');
INSERT INTO events VALUES(22,1795740642554000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',1,'pack','{"type":"call_ended","call":"c2","attempt":1,"status":"failed","error":"`false; echo tried >> log; test -f fixed` exited with code 1"}',NULL);
INSERT INTO events VALUES(23,1795740642554000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',1,'pack','{"type":"status","from":"in_progress","to":"failed","cause":"report","text":"call `c2` (shell): `false; echo tried >> log; test -f fixed` exited with code 1","attempt":1}',NULL);
INSERT INTO events VALUES(24,1795740642554000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',2,'ship','{"type":"status","from":"todo","to":"blocked","cause":"gate","reason":{"type":"dependency","ids":[]},"attempt":0}',NULL);
INSERT INTO events VALUES(25,1795740642564000000,'user@host','20991cac-b050-4db8-b0b8-8cc57939000e',NULL,NULL,'{"type":"run_finished","exit":1,"counts":{"blocked":1,"done":2,"failed":1}}',NULL);
INSERT INTO events VALUES(26,1795740642588000000,'user@host',NULL,4,'publish','{"type":"status","from":"blocked","to":"todo","cause":"approve","attempt":0}','[4]');
CREATE TABLE counters (
    only INTEGER PRIMARY KEY CHECK (only = 0), revision INTEGER NOT NULL, next_key INTEGER NOT NULL, todo INTEGER NOT NULL,
    in_progress INTEGER NOT NULL, blocked INTEGER NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL, skipped INTEGER NOT NULL
);
INSERT INTO counters VALUES(0,26,6,2,0,1,2,1,0,0);
CREATE TABLE undo (
    revision INTEGER PRIMARY KEY, first INTEGER NOT NULL, actor TEXT NOT NULL, undoes INTEGER, undone_by INTEGER, image TEXT
);
INSERT INTO undo VALUES(8,1,'user@host',NULL,NULL,'{"created":[[0,5]],"plans":{"shop":null}}');
INSERT INTO undo VALUES(26,26,'user@host',NULL,NULL,'{"tasks":[{"key":4,"body":{"state":{"status":"blocked","reason":{"type":"approval","hash":"034482b0ac4d04ac446355028f8e9eafaa75dd89e999b4a40a4d732e97f6bc2a","policy":"454c4f0b10f85ff5dbe1416c431dfa870e4708d2d81fbea2c537a5d1a9021fc2"}},"attempt":0}}]}');
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
