/* SPDX-License-Identifier: BSD-2-Clause */
/* The schema as SQL. Columns are described in SCHEMA.md; the order of the columns is that in which sql.c and objects.c insert them. */
#include "report/sql/database.h"

const char *const sql_table_names[SQL_TABLES] = {
	[SQL_RECORDING] = "recording",
	[SQL_STRINGS] = "strings",
	[SQL_FUNCTIONS] = "functions",
	[SQL_PROCESSES] = "processes",
	[SQL_THREADS] = "threads",
	[SQL_PROGRAMS] = "programs",
	[SQL_INFERENCES] = "inferences",
	[SQL_INFERENCE_COUNTERS] = "inference_counters",
	[SQL_CALLS] = "calls",
	[SQL_OPERATOR_NAMES] = "operator_names",
	[SQL_OPERATORS] = "operators",
	[SQL_REGIONS] = "regions",
	[SQL_DEVICES] = "devices",
	[SQL_QUEUES] = "queues",
	[SQL_JOBS] = "jobs",
	[SQL_DEVICE_EVENTS] = "device_events",
	[SQL_IOCTLS] = "ioctls",
	[SQL_COUNTERS] = "counters",
	[SQL_READINGS] = "readings",
	[SQL_LEVELS] = "levels",
	[SQL_LOSSES] = "losses",
	[SQL_LOSS_TIMES] = "loss_times",
	[SQL_MODULES] = "modules",
	[SQL_FRAMES] = "frames",
	[SQL_STACKS] = "stacks",
	[SQL_STACK_FRAMES] = "stack_frames",
	[SQL_SAMPLES] = "samples",
	[SQL_OFF_CPU] = "off_cpu",
	[SQL_CODE_OBJECTS] = "code_objects",
	[SQL_CODE_LOADS] = "code_loads",
	[SQL_BUDGET_CHANGES] = "budget_changes",
	[SQL_WAITS] = "waits",
	[SQL_TASKS] = "tasks",
};

const char sql_schema_tables[] =
	"CREATE TABLE recording (id INTEGER PRIMARY KEY CHECK (id = 1), schema_version INTEGER NOT NULL, version TEXT,"
	" host TEXT, kernel TEXT, machine TEXT, boot_id TEXT, command TEXT, cpus INTEGER,"
	" monotonic INTEGER NOT NULL, realtime INTEGER NOT NULL, first INTEGER, last INTEGER,"
	" complete INTEGER NOT NULL, stopped_by TEXT, duration INTEGER, probed_calls INTEGER, probe_time INTEGER,"
	" collector_cpu INTEGER, collector_memory INTEGER, end TEXT);"
	"CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
	"CREATE TABLE functions (id INTEGER PRIMARY KEY, runtime TEXT NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL);"
	"CREATE TABLE processes (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent INTEGER, start_ticks INTEGER,"
	" name TEXT, command TEXT);"
	"CREATE INDEX processes_pid ON processes (pid);"
	"CREATE TABLE threads (id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes, tid INTEGER NOT NULL,"
	" name TEXT, UNIQUE (process, tid));"
	"CREATE TABLE programs (id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes, runtime TEXT NOT NULL,"
	" name TEXT NOT NULL, named INTEGER NOT NULL, name_source TEXT, role TEXT, handle INTEGER, generation INTEGER,"
	" loaded INTEGER, released INTEGER, size INTEGER, core INTEGER, calls INTEGER, left_out INTEGER, lost INTEGER,"
	" recorded INTEGER, errors INTEGER, pending INTEGER, unended INTEGER);"
	"CREATE TABLE inferences (id INTEGER PRIMARY KEY, program INTEGER NOT NULL REFERENCES programs,"
	" thread INTEGER REFERENCES threads, start INTEGER, duration INTEGER,"
	" function INTEGER NOT NULL REFERENCES functions, number INTEGER, sample INTEGER NOT NULL, failed INTEGER NOT NULL,"
	" status INTEGER, status_name INTEGER REFERENCES strings, flow INTEGER, enqueued INTEGER,"
	" wait_thread INTEGER REFERENCES threads, in_queue INTEGER, bytes INTEGER, core INTEGER,"
	" jobs INTEGER, unfinished_jobs INTEGER, failed_jobs INTEGER, submit_begins INTEGER, submit_ends INTEGER,"
	" device_runs INTEGER, device_done INTEGER, queue_time INTEGER, device_time INTEGER, busy_time INTEGER,"
	" cpu_time INTEGER, waited_time INTEGER, blocked_time INTEGER, voluntary_switches INTEGER,"
	" involuntary_switches INTEGER, minor_faults INTEGER, major_faults INTEGER, tracing_time INTEGER,"
	" phase TEXT, tokens INTEGER, first_token INTEGER, output_token INTEGER);"
	"CREATE TABLE counters (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT, description TEXT, source TEXT,"
	" kind TEXT NOT NULL, of TEXT, readings INTEGER, least REAL, most REAL, mean REAL, total REAL);"
	"CREATE TABLE inference_counters (inference INTEGER NOT NULL REFERENCES inferences,"
	" counter INTEGER NOT NULL REFERENCES counters, value REAL NOT NULL, PRIMARY KEY (inference, counter)) WITHOUT ROWID;"
	"CREATE TABLE calls (id INTEGER PRIMARY KEY, function INTEGER NOT NULL REFERENCES functions,"
	" program INTEGER REFERENCES programs, thread INTEGER REFERENCES threads, start INTEGER, duration INTEGER,"
	" depth INTEGER NOT NULL, layer INTEGER NOT NULL, inside INTEGER NOT NULL, sample INTEGER NOT NULL,"
	" failed INTEGER NOT NULL, status INTEGER, status_name INTEGER REFERENCES strings, flow INTEGER, bytes INTEGER,"
	" name INTEGER REFERENCES strings, handle INTEGER, stream INTEGER, core INTEGER,"
	" cpu_time INTEGER, waited_time INTEGER, blocked_time INTEGER, tracing_time INTEGER);"
	"CREATE TABLE operator_names (id INTEGER PRIMARY KEY, process INTEGER NOT NULL REFERENCES processes,"
	" program INTEGER REFERENCES programs, label TEXT NOT NULL, type TEXT NOT NULL, number INTEGER, name TEXT, class TEXT,"
	" provider TEXT, node INTEGER, recorded INTEGER, self_time INTEGER, tracing_time INTEGER, launches INTEGER,"
	" jobs INTEGER, failed_jobs INTEGER, device_time INTEGER);"
	"CREATE TABLE operators (id INTEGER PRIMARY KEY, operator INTEGER REFERENCES operator_names,"
	" inference INTEGER REFERENCES inferences, thread INTEGER REFERENCES threads, start INTEGER,"
	" duration INTEGER, failed INTEGER NOT NULL, depth INTEGER NOT NULL, cpu_time INTEGER, waited_time INTEGER,"
	" blocked_time INTEGER, function INTEGER NOT NULL REFERENCES functions);"
	"CREATE TABLE regions (id INTEGER PRIMARY KEY, name INTEGER REFERENCES strings,"
	" thread INTEGER REFERENCES threads, start INTEGER, duration INTEGER NOT NULL, runtime INTEGER REFERENCES strings,"
	" request INTEGER REFERENCES strings);"
	"CREATE TABLE devices (id INTEGER PRIMARY KEY, driver TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (driver, name));"
	"CREATE TABLE queues (id INTEGER PRIMARY KEY, device INTEGER NOT NULL REFERENCES devices, engine TEXT NOT NULL,"
	" jobs INTEGER, failed INTEGER, target_jobs INTEGER, first INTEGER, last INTEGER, busy_time INTEGER,"
	" target_time INTEGER);"
	"CREATE TABLE jobs (id INTEGER PRIMARY KEY, queue INTEGER REFERENCES queues, name INTEGER REFERENCES strings,"
	" queued INTEGER, runs INTEGER, done INTEGER, pid INTEGER, tid INTEGER, process INTEGER REFERENCES processes,"
	" thread INTEGER REFERENCES threads, program INTEGER REFERENCES programs, inference INTEGER REFERENCES inferences,"
	" call_start INTEGER, operator INTEGER REFERENCES operator_names, failed INTEGER NOT NULL, status INTEGER, size INTEGER);"
	"CREATE TABLE device_events (id INTEGER PRIMARY KEY, time INTEGER, driver TEXT, event TEXT, role TEXT NOT NULL,"
	" queue INTEGER REFERENCES queues, device TEXT, engine TEXT, name TEXT, thread INTEGER REFERENCES threads, job INTEGER,"
	" size INTEGER, count INTEGER, status INTEGER);"
	"CREATE TABLE ioctls (id INTEGER PRIMARY KEY, node INTEGER REFERENCES strings,"
	" name INTEGER REFERENCES strings, role TEXT, thread INTEGER REFERENCES threads, start INTEGER,"
	" duration INTEGER NOT NULL, command INTEGER NOT NULL, result INTEGER NOT NULL);"
	"CREATE TABLE readings (id INTEGER PRIMARY KEY, counter INTEGER NOT NULL REFERENCES counters, since INTEGER,"
	" time INTEGER, value REAL);"
	"CREATE TABLE levels (id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes,"
	" runtime INTEGER REFERENCES strings, name INTEGER REFERENCES strings, time INTEGER,"
	" value INTEGER NOT NULL);"
	"CREATE TABLE losses (cause TEXT PRIMARY KEY, description TEXT NOT NULL, count INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE loss_times (id INTEGER PRIMARY KEY, cause TEXT REFERENCES losses, since INTEGER, time INTEGER,"
	" count INTEGER NOT NULL);"
	"CREATE TABLE modules (id INTEGER PRIMARY KEY, path TEXT, build_id TEXT);"
	"CREATE TABLE frames (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, function TEXT, file TEXT, line INTEGER,"
	" module INTEGER REFERENCES modules, module_offset INTEGER, inlined INTEGER NOT NULL);"
	"CREATE TABLE stacks (id INTEGER PRIMARY KEY, partial INTEGER NOT NULL);"
	"CREATE TABLE stack_frames (stack INTEGER NOT NULL REFERENCES stacks, position INTEGER NOT NULL,"
	" frame INTEGER NOT NULL REFERENCES frames, PRIMARY KEY (stack, position)) WITHOUT ROWID;"
	"CREATE TABLE samples (id INTEGER PRIMARY KEY, stack INTEGER NOT NULL REFERENCES stacks,"
	" thread INTEGER REFERENCES threads, time INTEGER, reason TEXT NOT NULL, weight INTEGER NOT NULL,"
	" function INTEGER REFERENCES functions, program INTEGER REFERENCES programs, operator INTEGER REFERENCES operator_names,"
	" call_start INTEGER, duration INTEGER, device_time INTEGER);"
	"CREATE TABLE off_cpu (id INTEGER PRIMARY KEY, thread INTEGER REFERENCES threads, reason TEXT,"
	" start INTEGER, woken INTEGER, end INTEGER, program INTEGER REFERENCES programs,"
	" operator INTEGER REFERENCES operator_names, syscall INTEGER, interrupt INTEGER NOT NULL,"
	" next INTEGER REFERENCES strings, next_tid INTEGER, waker INTEGER REFERENCES strings, waker_tid INTEGER);"
	"CREATE TABLE code_objects (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, machine TEXT, name TEXT, uri TEXT, sha256 TEXT,"
	" error TEXT, size INTEGER, kernels INTEGER, functions INTEGER, loads INTEGER, unloads INTEGER, incomplete INTEGER);"
	"CREATE TABLE code_loads (id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes,"
	" thread INTEGER REFERENCES threads, time INTEGER, unloaded INTEGER NOT NULL, kind TEXT,"
	" name INTEGER REFERENCES strings, sha256 INTEGER REFERENCES strings, handle INTEGER, size INTEGER, missing INTEGER,"
	" waited INTEGER);"
	"CREATE TABLE budget_changes (id INTEGER PRIMARY KEY, time INTEGER, action TEXT NOT NULL, traced INTEGER NOT NULL,"
	" pid INTEGER, name TEXT, every INTEGER, programs INTEGER, since INTEGER, cost REAL, budget REAL);"
	"CREATE TABLE waits (id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes, start INTEGER,"
	" duration INTEGER NOT NULL, sites INTEGER NOT NULL);"
	"CREATE TABLE tasks (id INTEGER PRIMARY KEY, process INTEGER REFERENCES processes, time INTEGER,"
	" what TEXT NOT NULL, other INTEGER, code INTEGER, name TEXT);";

const char sql_schema_indices[] = "CREATE INDEX inferences_program ON inferences (program, start);"
				  "CREATE INDEX operators_inference ON operators (inference);"
				  "CREATE INDEX operators_operator ON operators (operator);"
				  "CREATE INDEX regions_name ON regions (name, start);"
				  "CREATE INDEX jobs_queue ON jobs (queue, runs);"
				  "CREATE INDEX jobs_inference ON jobs (inference) WHERE inference IS NOT NULL;"
				  "CREATE INDEX readings_counter ON readings (counter, time);"
				  "CREATE INDEX samples_stack ON samples (stack);"
				  "CREATE INDEX off_cpu_thread ON off_cpu (thread, start);"
				  "CREATE INDEX programs_process ON programs (process);";

/* Quantiles by nearest rank, as elsewhere. Readers that go by types take what is computed for text without a cast. */
const char sql_schema_views[] =
	"CREATE VIEW slowest AS SELECT i.id, p.name AS program, p.runtime, r.pid, r.name AS process, t.tid, t.name AS"
	" thread, i.start, CAST(i.start + c.realtime AS INTEGER) AS realtime, i.duration, i.queue_time, i.device_time,"
	" i.cpu_time, i.waited_time, i.blocked_time, i.tracing_time, i.jobs, i.minor_faults, i.major_faults, i.failed,"
	" s.text AS status"
	" FROM inferences i JOIN programs p ON p.id = i.program JOIN processes r ON r.id = p.process JOIN recording c LEFT"
	" JOIN threads t ON t.id = i.thread LEFT JOIN strings s ON s.id = i.status_name WHERE i.duration IS NOT NULL ORDER"
	" BY i.duration DESC, i.start;"
	"CREATE VIEW latency AS SELECT program, name, runtime, pid, process, inferences, failed, total, least, p50, p90,"
	" p99, most"
	" FROM (SELECT program, CAST(count(*) AS INTEGER) AS inferences, CAST(sum(failed) AS INTEGER) AS failed,"
	" CAST(sum(duration) AS INTEGER) AS total, CAST(min(duration) AS INTEGER) AS least, CAST(max(duration) AS INTEGER)"
	" AS most, CAST(min(duration) FILTER (WHERE rank >= 0.5 * n) AS INTEGER) AS p50, CAST(min(duration) FILTER (WHERE"
	" rank >= 0.9 * n) AS INTEGER) AS p90, CAST(min(duration) FILTER (WHERE rank >= 0.99 * n) AS INTEGER) AS p99"
	" FROM (SELECT program, duration, failed, row_number() OVER (PARTITION BY program ORDER BY duration) AS rank,"
	" count(*) OVER (PARTITION BY program) AS n"
	" FROM inferences WHERE duration IS NOT NULL) GROUP BY program) JOIN (SELECT p.id, p.name, p.runtime, r.pid, r.name"
	" AS process"
	" FROM programs p JOIN processes r ON r.id = p.process) ON id = program ORDER BY total DESC;"
	"CREATE VIEW per_second AS SELECT CAST(i.start / 1000000000 AS INTEGER) AS second, i.program, p.name,"
	" CAST(count(*) AS INTEGER) AS inferences, CAST(sum(i.sample) AS INTEGER) AS estimated, CAST(sum(i.failed) AS"
	" INTEGER) AS failed, CAST(avg(i.duration) AS REAL) AS mean, CAST(max(i.duration) AS INTEGER) AS most FROM"
	" inferences i JOIN programs p ON p.id = i.program GROUP BY 1, 2;"
	"CREATE VIEW operators_by_type AS SELECT p.name AS program, r.pid, n.type, CAST(count(*) AS INTEGER) AS"
	" executions, CAST(sum(o.duration) AS INTEGER) AS total, CAST(avg(o.duration) AS REAL) AS mean,"
	" CAST(max(o.duration) AS INTEGER) AS most, CAST(sum(o.failed) AS INTEGER) AS failed"
	" FROM operators o JOIN operator_names n ON n.id = o.operator JOIN processes r ON r.id = n.process LEFT JOIN"
	" programs p ON p.id = n.program GROUP BY n.program, n.process, n.type ORDER BY total DESC;"
	"CREATE VIEW device_use AS SELECT d.driver, d.name AS device, q.engine, j.pid, r.name AS process, CAST(count(*) AS"
	" INTEGER) AS jobs, CAST(sum(j.failed) AS INTEGER) AS failed, CAST(sum(j.done - j.runs) AS INTEGER) AS device_time,"
	" CAST(sum(j.runs - j.queued) AS INTEGER) AS queue_time"
	" FROM jobs j JOIN queues q ON q.id = j.queue JOIN devices d ON d.id = q.device LEFT JOIN processes r ON r.id ="
	" j.process GROUP BY j.queue, j.pid, j.process ORDER BY device_time DESC;"
	"CREATE VIEW all_calls AS SELECT function, program, thread, start, CAST(duration AS INTEGER) AS duration, sample,"
	" failed, status, status_name, layer, inside, CAST(inference AS INTEGER) AS inference"
	" FROM (SELECT function, program, thread, start, duration, sample, failed, status, status_name, layer, inside,"
	" NULL AS inference FROM calls UNION ALL SELECT function, program, thread, start, coalesce(duration, enqueued),"
	" sample, failed, status, status_name, 0, NULL, id FROM inferences WHERE flow IS NULL);"
	"CREATE VIEW flame AS SELECT s.id AS sample, s.reason, s.weight, f.position, f.frame, g.function, g.file, g.line,"
	" m.path"
	" FROM samples s JOIN stack_frames f ON f.stack = s.stack JOIN frames g ON g.id = f.frame LEFT JOIN modules m ON"
	" m.id = g.module;";
