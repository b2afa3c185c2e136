PRAGMA application_id = 1414559596;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE applied (key INTEGER PRIMARY KEY, spec TEXT NOT NULL);
INSERT INTO "applied" VALUES(0,'{"has_id":true,"spec":{"name":"fetch","labels":["net","slow"]},"calls":[[null,{"toolName":"shell","args":{"command":"echo fetched"}}]],"needs":[],"parent":null}');
INSERT INTO "applied" VALUES(1,'{"has_id":true,"spec":{"name":"build","priority":"high"},"calls":[[null,{"toolName":"shell","args":{"command":"echo one"},"saveAs":"first"}]],"needs":["fetch"],"parent":null}');
INSERT INTO "applied" VALUES(2,'{"has_id":true,"spec":{"name":"broken"},"calls":[[null,{"toolName":"shell","args":{"command":"exit 3"}}]],"needs":[],"parent":null}');
INSERT INTO "applied" VALUES(3,'{"has_id":true,"spec":{"name":"after-broken"},"calls":[[null,{"toolName":"shell","args":{"command":"echo never"}}]],"needs":["broken"],"parent":null}');
INSERT INTO "applied" VALUES(4,'{"has_id":true,"spec":{"name":"clean","trigger":"all_finished"},"calls":[[null,{"toolName":"shell","args":{"command":"echo cleaned"}}]],"needs":["broken"],"parent":null}');
INSERT INTO "applied" VALUES(5,'{"has_id":true,"spec":{"name":"review","description":"look at it","dueDate":"2026-02-03T00:00:00Z","assignee":"ann"},"calls":[],"needs":["build"],"parent":null}');
INSERT INTO "applied" VALUES(6,'{"has_id":true,"spec":{"name":"release"},"calls":[],"needs":[],"parent":null}');
INSERT INTO "applied" VALUES(7,'{"has_id":true,"spec":{"name":"notes"},"calls":[],"needs":["review"],"parent":"release"}');
INSERT INTO "applied" VALUES(8,'{"has_id":true,"spec":{"name":"upload"},"calls":[[null,{"toolName":"shell","args":{"command":"echo up"}}]],"needs":["notes"],"parent":"release"}');
INSERT INTO "applied" VALUES(9,'{"has_id":true,"spec":{"name":"all","milestone":true},"calls":[],"needs":["clean","release"],"parent":null}');
CREATE TABLE bodies (
    key INTEGER PRIMARY KEY, version INTEGER NOT NULL, updated INTEGER NOT NULL, body TEXT NOT NULL
);
INSERT INTO "bodies" VALUES(0,3,1767323045000000000,'{"state":{"status":"done"},"attempt":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(1,3,1767323045000000000,'{"state":{"status":"done"},"attempt":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(2,3,1767323045000000000,'{"state":{"status":"failed","error":"call `c1` (shell): `exit 3` exited with code 3"},"attempt":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(3,2,1767323045000000000,'{"state":{"status":"blocked","reason":{"type":"dependency","ids":[]}},"attempt":0}');
INSERT INTO "bodies" VALUES(4,3,1767323045000000000,'{"state":{"status":"done"},"attempt":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(5,2,1767323045000000000,'{"state":{"status":"done"},"result":{"ok":true},"notes":[{"at":"2026-01-02T03:04:05Z","actor":"ann@host","text":"fine"}],"attempt":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(6,1,1767323045000000000,'{"state":{"status":"todo"},"attempt":0}');
INSERT INTO "bodies" VALUES(7,1,1767323045000000000,'{"state":{"status":"todo"},"attempt":0}');
INSERT INTO "bodies" VALUES(8,1,1767323045000000000,'{"state":{"status":"todo"},"attempt":0}');
INSERT INTO "bodies" VALUES(9,1,1767323045000000000,'{"state":{"status":"todo"},"attempt":0}');
INSERT INTO "bodies" VALUES(10,2,1767323045000000000,'{"state":{"status":"todo"},"notes":[{"at":"2026-01-02T03:04:05Z","actor":"ann@host","text":"a remark"}],"attempt":0}');
INSERT INTO "bodies" VALUES(11,2,1767323045000000000,'{"state":{"status":"cancelled"},"attempt":0,"finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(12,2,1767323045000000000,'{"state":{"status":"skipped"},"attempt":0,"finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "bodies" VALUES(14,2,1767323045000000000,'{"state":{"status":"blocked","reason":{"type":"manual","text":"wait for Bob"}},"attempt":0}');
INSERT INTO "bodies" VALUES(15,2,1767323045000000000,'{"state":{"status":"in_progress","claim":{"actor":"agent-7","leaseUntil":"2026-01-02T03:34:05Z"}},"attempt":1,"startedAt":"2026-01-02T03:04:05Z"}');
CREATE TABLE calls (
    slot INTEGER PRIMARY KEY, id TEXT NOT NULL, origin TEXT NOT NULL, spec TEXT NOT NULL, body TEXT NOT NULL
);
INSERT INTO "calls" VALUES(0,'c1','plan','{"toolName":"shell","args":{"command":"echo fetched"}}','{"status":"succeeded","result":{"exitCode":0,"stderr":"","stdout":"fetched\n","truncated":false},"attempts":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "calls" VALUES(16777216,'c1','plan','{"toolName":"shell","args":{"command":"echo one"},"saveAs":"first"}','{"status":"succeeded","result":{"exitCode":0,"stderr":"","stdout":"one\n","truncated":false},"attempts":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "calls" VALUES(33554432,'c1','plan','{"toolName":"shell","args":{"command":"exit 3"}}','{"status":"failed","result":{"exitCode":3,"stderr":"","stdout":"","truncated":false},"error":{"class":"exit_code","message":"`exit 3` exited with code 3"},"attempts":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "calls" VALUES(50331648,'c1','plan','{"toolName":"shell","args":{"command":"echo never"}}','{"status":"pending","attempts":0}');
INSERT INTO "calls" VALUES(67108864,'c1','plan','{"toolName":"shell","args":{"command":"echo cleaned"}}','{"status":"succeeded","result":{"exitCode":0,"stderr":"","stdout":"cleaned\n","truncated":false},"attempts":1,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}');
INSERT INTO "calls" VALUES(134217728,'c1','plan','{"toolName":"shell","args":{"command":"echo up"}}','{"status":"pending","attempts":0}');
CREATE TABLE counters (
    only INTEGER PRIMARY KEY CHECK (only = 0), revision INTEGER NOT NULL, next_key INTEGER NOT NULL, todo INTEGER NOT NULL,
    in_progress INTEGER NOT NULL, blocked INTEGER NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL, skipped INTEGER NOT NULL
);
INSERT INTO "counters" VALUES(0,47,16,5,1,2,4,1,1,1);
CREATE TABLE deleted_ids (id TEXT PRIMARY KEY, plan TEXT) WITHOUT ROWID;
INSERT INTO "deleted_ids" VALUES('gone',NULL);
CREATE TABLE dependencies (
    task INTEGER NOT NULL, dependency INTEGER NOT NULL, PRIMARY KEY (task, dependency)
) WITHOUT ROWID;
INSERT INTO "dependencies" VALUES(1,0);
INSERT INTO "dependencies" VALUES(5,1);
INSERT INTO "dependencies" VALUES(3,2);
INSERT INTO "dependencies" VALUES(4,2);
INSERT INTO "dependencies" VALUES(9,4);
INSERT INTO "dependencies" VALUES(7,5);
INSERT INTO "dependencies" VALUES(9,6);
INSERT INTO "dependencies" VALUES(8,7);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, run TEXT, task INTEGER, task_id TEXT,
    data TEXT NOT NULL, ready TEXT
);
INSERT INTO "events" VALUES(1,1767323045000000000,'ann@host',NULL,0,'fetch','{"type":"created","name":"fetch","plan":"golden"}',NULL);
INSERT INTO "events" VALUES(2,1767323045000000000,'ann@host',NULL,1,'build','{"type":"created","name":"build","dependencies":["fetch"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(3,1767323045000000000,'ann@host',NULL,2,'broken','{"type":"created","name":"broken","plan":"golden"}',NULL);
INSERT INTO "events" VALUES(4,1767323045000000000,'ann@host',NULL,3,'after-broken','{"type":"created","name":"after-broken","dependencies":["broken"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(5,1767323045000000000,'ann@host',NULL,4,'clean','{"type":"created","name":"clean","dependencies":["broken"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(6,1767323045000000000,'ann@host',NULL,5,'review','{"type":"created","name":"review","dependencies":["build"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(7,1767323045000000000,'ann@host',NULL,6,'release','{"type":"created","name":"release","plan":"golden"}',NULL);
INSERT INTO "events" VALUES(8,1767323045000000000,'ann@host',NULL,7,'notes','{"type":"created","name":"notes","parent":"release","dependencies":["review"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(9,1767323045000000000,'ann@host',NULL,8,'upload','{"type":"created","name":"upload","parent":"release","dependencies":["notes"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(10,1767323045000000000,'ann@host',NULL,9,'all','{"type":"created","name":"all","dependencies":["clean","release"],"plan":"golden"}',NULL);
INSERT INTO "events" VALUES(11,1767323045000000000,'ann@host',NULL,NULL,NULL,'{"type":"applied","plan":"golden","created":10,"changed":0,"pruned":0}','[0,2]');
INSERT INTO "events" VALUES(12,1767323045000000000,'ann@host',NULL,10,'hand','{"type":"created","name":"by hand"}','[10]');
INSERT INTO "events" VALUES(13,1767323045000000000,'ann@host',NULL,11,'given-up','{"type":"created","name":"given up"}','[11]');
INSERT INTO "events" VALUES(14,1767323045000000000,'ann@host',NULL,12,'not-needed','{"type":"created","name":"not needed"}','[12]');
INSERT INTO "events" VALUES(15,1767323045000000000,'ann@host',NULL,13,'gone','{"type":"created","name":"gone"}','[13]');
INSERT INTO "events" VALUES(16,1767323045000000000,'ann@host',NULL,14,'held','{"type":"created","name":"held"}','[14]');
INSERT INTO "events" VALUES(17,1767323045000000000,'ann@host',NULL,15,'claimed','{"type":"created","name":"claimed"}','[15]');
INSERT INTO "events" VALUES(18,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',NULL,NULL,'{"type":"run_started","scope":[]}',NULL);
INSERT INTO "events" VALUES(19,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',0,'fetch','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO "events" VALUES(20,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',0,'fetch','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO "events" VALUES(21,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',2,'broken','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO "events" VALUES(22,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',2,'broken','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO "events" VALUES(23,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',0,'fetch','{"type":"call_ended","call":"c1","attempt":1,"status":"succeeded"}',NULL);
INSERT INTO "events" VALUES(24,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',0,'fetch','{"type":"status","from":"in_progress","to":"done","cause":"report","attempt":1}',NULL);
INSERT INTO "events" VALUES(25,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',2,'broken','{"type":"call_ended","call":"c1","attempt":1,"status":"failed","error":"`exit 3` exited with code 3"}',NULL);
INSERT INTO "events" VALUES(26,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',2,'broken','{"type":"status","from":"in_progress","to":"failed","cause":"report","text":"call `c1` (shell): `exit 3` exited with code 3","attempt":1}',NULL);
INSERT INTO "events" VALUES(27,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',3,'after-broken','{"type":"status","from":"todo","to":"blocked","cause":"gate","reason":{"type":"dependency","ids":[]},"attempt":0}',NULL);
INSERT INTO "events" VALUES(28,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',1,'build','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO "events" VALUES(29,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',1,'build','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO "events" VALUES(30,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',4,'clean','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1}',NULL);
INSERT INTO "events" VALUES(31,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',4,'clean','{"type":"call_started","call":"c1","attempt":1,"start":1}',NULL);
INSERT INTO "events" VALUES(32,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',1,'build','{"type":"call_ended","call":"c1","attempt":1,"status":"succeeded"}',NULL);
INSERT INTO "events" VALUES(33,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',1,'build','{"type":"status","from":"in_progress","to":"done","cause":"report","attempt":1}',NULL);
INSERT INTO "events" VALUES(34,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',4,'clean','{"type":"call_ended","call":"c1","attempt":1,"status":"succeeded"}',NULL);
INSERT INTO "events" VALUES(35,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',4,'clean','{"type":"status","from":"in_progress","to":"done","cause":"report","attempt":1}','[5]');
INSERT INTO "events" VALUES(36,1767323045000000000,'ann@host','baefe5ad-3266-4e7c-a44f-09d2e8bcd649',NULL,NULL,'{"type":"run_finished","exit":1,"counts":{"blocked":1,"done":3,"failed":1}}',NULL);
INSERT INTO "events" VALUES(37,1767323045000000000,'ann@host',NULL,11,'given-up','{"type":"status","from":"todo","to":"cancelled","cause":"cancel","attempt":0}',NULL);
INSERT INTO "events" VALUES(38,1767323045000000000,'ann@host',NULL,12,'not-needed','{"type":"status","from":"todo","to":"skipped","cause":"skip","attempt":0}',NULL);
INSERT INTO "events" VALUES(39,1767323045000000000,'ann@host',NULL,13,'gone','{"type":"deleted","task":{"attempt":0,"createdAt":"2026-01-02T03:04:05Z","dependencies":[],"description":"","id":"gone","metadata":{"context":{},"toolCalls":[]},"name":"gone","priority":"medium","status":"todo","subtasks":[],"updatedAt":"2026-01-02T03:04:05Z","version":1}}',NULL);
INSERT INTO "events" VALUES(40,1767323045000000000,'ann@host',NULL,14,'held','{"type":"status","from":"todo","to":"blocked","cause":"block","reason":{"type":"manual","text":"wait for Bob"},"attempt":0}',NULL);
INSERT INTO "events" VALUES(41,1767323045000000000,'agent-7',NULL,15,'claimed','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1,"leaseUntil":"2026-01-02T03:34:05Z"}',NULL);
INSERT INTO "events" VALUES(42,1767323045000000000,'ann@host',NULL,10,'hand','{"type":"noted","text":"a remark"}',NULL);
INSERT INTO "events" VALUES(43,1767323045000000000,'ann@host',NULL,5,'review','{"type":"noted","text":"fine"}',NULL);
INSERT INTO "events" VALUES(44,1767323045000000000,'ann@host',NULL,5,'review','{"type":"status","from":"todo","to":"in_progress","cause":"claim","attempt":1,"leaseUntil":"2026-01-02T03:04:05Z"}',NULL);
INSERT INTO "events" VALUES(45,1767323045000000000,'ann@host',NULL,5,'review','{"type":"status","from":"in_progress","to":"done","cause":"report","text":"fine","attempt":1}','[7]');
INSERT INTO "events" VALUES(46,1767323045000000000,'ann@host','09aab36c-fda2-41b3-b62e-9e3f4c82a851',NULL,NULL,'{"type":"run_started","scope":[]}',NULL);
INSERT INTO "events" VALUES(47,1767323045000000000,'ann@host','09aab36c-fda2-41b3-b62e-9e3f4c82a851',NULL,NULL,'{"type":"run_finished","exit":1,"counts":{}}',NULL);
CREATE TABLE labels (task INTEGER NOT NULL, label TEXT NOT NULL, PRIMARY KEY (task, label)) WITHOUT ROWID;
INSERT INTO "labels" VALUES(10,'home');
INSERT INTO "labels" VALUES(0,'net');
INSERT INTO "labels" VALUES(0,'slow');
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY, parent INTEGER, phase INTEGER NOT NULL, work INTEGER NOT NULL, gate_state INTEGER NOT NULL,
    opens INTEGER NOT NULL, gate_trigger INTEGER NOT NULL, entry INTEGER NOT NULL, priority INTEGER NOT NULL, due INTEGER NOT NULL,
    dependencies_open INTEGER NOT NULL, dependencies_done INTEGER NOT NULL, dependencies_skipped INTEGER NOT NULL,
    dependencies_failed INTEGER NOT NULL, subtasks_open INTEGER NOT NULL, subtasks_finished INTEGER NOT NULL,
    subtasks_failed INTEGER NOT NULL, undecided INTEGER NOT NULL
);
INSERT INTO "nodes" VALUES(0,NULL,5,0,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(1,NULL,5,0,1,0,0,0,1,9223372036854775807,0,1,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(2,NULL,6,0,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(3,NULL,2,0,2,2,0,0,2,9223372036854775807,0,0,0,1,0,0,0,0);
INSERT INTO "nodes" VALUES(4,NULL,5,0,1,0,2,0,2,9223372036854775807,0,0,0,1,0,0,0,0);
INSERT INTO "nodes" VALUES(5,NULL,5,1,1,0,0,0,2,1770076800000,0,1,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(6,NULL,0,2,0,0,0,0,2,9223372036854775807,0,0,0,0,2,0,0,0);
INSERT INTO "nodes" VALUES(7,6,0,1,1,0,0,0,2,9223372036854775807,0,1,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(8,6,0,0,0,1,0,0,2,9223372036854775807,1,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(9,NULL,0,2,0,1,0,0,2,9223372036854775807,1,1,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(10,NULL,0,1,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(11,NULL,7,1,1,1,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(12,NULL,8,1,1,1,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(14,NULL,4,1,1,1,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
INSERT INTO "nodes" VALUES(15,NULL,1,1,1,0,0,0,2,9223372036854775807,0,0,0,0,0,0,0,0);
CREATE TABLE plans (name TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "plans" VALUES('golden','{"name":"golden","header":{"version":1},"appliedAt":"2026-01-02T03:04:05Z"}');
CREATE TABLE runs (position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
INSERT INTO "runs" VALUES(1,'baefe5ad-3266-4e7c-a44f-09d2e8bcd649','{"id":"baefe5ad-3266-4e7c-a44f-09d2e8bcd649","scope":[],"actor":"ann@host","host":"host","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z","exit":1,"counts":{"blocked":1,"done":3,"failed":1}}');
INSERT INTO "runs" VALUES(2,'09aab36c-fda2-41b3-b62e-9e3f4c82a851','{"id":"09aab36c-fda2-41b3-b62e-9e3f4c82a851","scope":[],"actor":"ann@host","host":"host","startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z","exit":1,"counts":{}}');
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, plan TEXT, assignee TEXT, created INTEGER NOT NULL, spec TEXT NOT NULL
);
INSERT INTO "tasks" VALUES(0,'fetch','golden',NULL,1767323045000000000,'{"name":"fetch","labels":["net","slow"]}');
INSERT INTO "tasks" VALUES(1,'build','golden',NULL,1767323045000000000,'{"name":"build","priority":"high"}');
INSERT INTO "tasks" VALUES(2,'broken','golden',NULL,1767323045000000000,'{"name":"broken"}');
INSERT INTO "tasks" VALUES(3,'after-broken','golden',NULL,1767323045000000000,'{"name":"after-broken"}');
INSERT INTO "tasks" VALUES(4,'clean','golden',NULL,1767323045000000000,'{"name":"clean","trigger":"all_finished"}');
INSERT INTO "tasks" VALUES(5,'review','golden','ann',1767323045000000000,'{"name":"review","description":"look at it","dueDate":"2026-02-03T00:00:00Z","assignee":"ann"}');
INSERT INTO "tasks" VALUES(6,'release','golden',NULL,1767323045000000000,'{"name":"release"}');
INSERT INTO "tasks" VALUES(7,'notes','golden',NULL,1767323045000000000,'{"name":"notes"}');
INSERT INTO "tasks" VALUES(8,'upload','golden',NULL,1767323045000000000,'{"name":"upload"}');
INSERT INTO "tasks" VALUES(9,'all','golden',NULL,1767323045000000000,'{"name":"all","milestone":true}');
INSERT INTO "tasks" VALUES(10,'hand',NULL,NULL,1767323045000000000,'{"name":"by hand","description":"a task made by hand","labels":["home"]}');
INSERT INTO "tasks" VALUES(11,'given-up',NULL,NULL,1767323045000000000,'{"name":"given up"}');
INSERT INTO "tasks" VALUES(12,'not-needed',NULL,NULL,1767323045000000000,'{"name":"not needed"}');
INSERT INTO "tasks" VALUES(14,'held',NULL,NULL,1767323045000000000,'{"name":"held"}');
INSERT INTO "tasks" VALUES(15,'claimed',NULL,NULL,1767323045000000000,'{"name":"claimed"}');
CREATE INDEX tasks_by_plan ON tasks(plan) WHERE plan IS NOT NULL;
CREATE INDEX tasks_by_assignee ON tasks(assignee) WHERE assignee IS NOT NULL;
CREATE INDEX nodes_by_parent ON nodes(parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_by_phase ON nodes(phase);
CREATE INDEX nodes_ready ON nodes(work, priority, due) WHERE phase = 0 AND gate_state = 1;
CREATE INDEX dependents ON dependencies(dependency, task);
CREATE INDEX labels_by_label ON labels(label, task);
CREATE INDEX events_by_task ON events(task) WHERE task IS NOT NULL;
COMMIT;
