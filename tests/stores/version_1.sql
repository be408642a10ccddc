CREATE TABLE blobs (sha256 TEXT PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "blobs" VALUES('44bc04dac5b66f4d560ea591817b835804e54d8014a1295b12612611b06c2f22','# Old

## STEP 1: Ask
');
CREATE TABLE journal (
        id INTEGER PRIMARY KEY,
        written_at REAL NOT NULL,
        position TEXT NOT NULL,
        total_input INTEGER NOT NULL,
        total_output INTEGER NOT NULL,
        total_cost REAL,
        path TEXT,
        kind TEXT,
        state TEXT,
        request TEXT,
        at REAL,
        value TEXT,
        blob TEXT,
        failure_kind TEXT,
        failure_message TEXT,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cost REAL,
        elapsed REAL,
        delays TEXT,
        events TEXT,
        events_blob TEXT
    );
INSERT INTO "journal" VALUES(1099511635968,1100.0,'1',12,3,0.25,'1/model','model','ok','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',1010.0,'{"text":"hello"}',NULL,NULL,NULL,12,3,0.25,1.5,'[0.5]','[[1,"run_started",1009.0,"","",{}],[2,"step_completed",1010.0,"1","1",{"title":"Think"}]]',NULL);
INSERT INTO "journal" VALUES(1099511635969,1100.0,'1',12,3,0.25,'2/tool','tool','failed','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',1020.0,NULL,NULL,'tool','no such file',NULL,NULL,NULL,0.0,NULL,NULL,NULL);
INSERT INTO "journal" VALUES(1099511640064,1100.0,'3',12,3,0.25,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[[3,"run_waiting",1030.0,"3/ask","3",{}]]',NULL);
CREATE TABLE pins (run INTEGER PRIMARY KEY, value TEXT, blob TEXT);
INSERT INTO "pins" VALUES(1,'{"inputs":{"topic":"Rust"},"document":"44bc04dac5b66f4d560ea591817b835804e54d8014a1295b12612611b06c2f22"}',NULL);
CREATE TABLE questions (
        run TEXT NOT NULL,
        path TEXT NOT NULL,
        label TEXT NOT NULL,
        title TEXT NOT NULL,
        kind TEXT NOT NULL,
        prompt TEXT NOT NULL,
        options TEXT,
        preset TEXT,
        hash TEXT NOT NULL,
        asked_at REAL NOT NULL,
        expires_at REAL,
        state TEXT NOT NULL DEFAULT 'open',
        answer TEXT,
        PRIMARY KEY (run, path)
    ) WITHOUT ROWID
    ;
INSERT INTO "questions" VALUES('old-1','3/ask','3','Approve','select','Ship it?','["yes","no"]','no','cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',1030.0,NULL,'open',NULL);
CREATE TABLE runs (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        format TEXT NOT NULL,
        document TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending',
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        expires_at REAL,
        failure_kind TEXT,
        failure_message TEXT,
        ended_by TEXT,
        epoch INTEGER NOT NULL DEFAULT 0,
        cancel_requested INTEGER NOT NULL DEFAULT 0
    );
INSERT INTO "runs" VALUES(1,'old-1','An old run','playbook','old.playbook.md','awaiting_input',1000.0,1100.0,5000.0,NULL,NULL,NULL,1,0);
CREATE INDEX runs_by_age ON runs (created_at);
CREATE INDEX runs_by_status ON runs (status, created_at);
CREATE INDEX questions_open ON questions (asked_at) WHERE state = 'open';
CREATE INDEX questions_answered ON questions (run) WHERE state = 'answered';
PRAGMA application_id = 1364543826;
PRAGMA user_version = 1;
