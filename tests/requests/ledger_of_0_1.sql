-- The tables of a ledger as version 0.1 made them (format 1).
CREATE TABLE events (
    event_number INTEGER PRIMARY KEY,
    request_id TEXT,
    event_time TEXT NOT NULL,
    event_name TEXT NOT NULL,
    status TEXT,
    actor_name TEXT NOT NULL,
    facts TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_request ON events (request_id, event_number);
CREATE INDEX events_by_name ON events (event_name, event_number);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
CREATE TABLE current_states (
    request_id TEXT PRIMARY KEY,
    first_number INTEGER NOT NULL,
    status TEXT NOT NULL
) STRICT;
CREATE INDEX current_states_by_state ON current_states (status, first_number);
CREATE TRIGGER events_make_states AFTER INSERT ON events WHEN NEW.status IS NOT NULL
    BEGIN
        INSERT INTO current_states VALUES (NEW.request_id, NEW.event_number, NEW.status)
            ON CONFLICT (request_id) DO UPDATE SET status = excluded.status;
    END;
CREATE TABLE open_requests (
    request_id TEXT PRIMARY KEY,
    user_id TEXT,
    item_ids TEXT,
    receipt_code TEXT
) STRICT;
CREATE INDEX open_requests_by_user ON open_requests (user_id);
CREATE TABLE intake (
    interaction_number INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    rating REAL,
    time REAL
) STRICT;
CREATE INDEX intake_by_user ON intake (user_id);
CREATE TABLE receipts (code_digest TEXT PRIMARY KEY, request_id TEXT NOT NULL) STRICT;
CREATE TABLE answers (
    key_digest TEXT PRIMARY KEY,
    answer_time REAL NOT NULL,
    body_digest TEXT NOT NULL,
    sealed_bytes BLOB NOT NULL
) STRICT;
CREATE TABLE tokens (
    token_number TEXT PRIMARY KEY,
    token_digest TEXT NOT NULL UNIQUE,
    role_name TEXT NOT NULL,
    label TEXT NOT NULL,
    created_time TEXT NOT NULL,
    revoked_time TEXT
) STRICT;
CREATE TABLE visits (visit_digest TEXT PRIMARY KEY, token_number TEXT NOT NULL, end_time REAL NOT NULL) STRICT;
CREATE TABLE lease (
    lease_number INTEGER NOT NULL,
    process_number INTEGER NOT NULL,
    process_start TEXT NOT NULL,
    end_time REAL NOT NULL
) STRICT;
INSERT INTO lease VALUES (0, 0, '', 0);
CREATE TABLE progress (batch_number TEXT NOT NULL, step_name TEXT NOT NULL, done_count INTEGER NOT NULL,
    total_count INTEGER, change_time REAL NOT NULL) STRICT;
