/* SPDX-License-Identifier: BSD-2-Clause */
/* The timeline of the whole recording; devices and counters on the same axis; code objects, functions and regions. */

function thread_title(thread) {
	return thread.name && thread.name !== thread.process ? `${thread.process} / ${thread.name} ${thread.tid}` : `${thread.process} ${thread.tid}`;
}

/* Spans of threads, by what they are. */
function thread_groups(data) {
	const groups = new Map(), { spans, names } = data;
	const group = (thread) => {
		if (!groups.has(thread))
			groups.set(thread, { inferences: [], operators: [], states: [], calls: [], regions: [] });
		return groups.get(thread);
	};
	const state = (key) => data.component[key] || data.component.waited;

	for (const program of data.programs) {
		for (const { start, duration, thread, flags } of program.samples)
			group(thread).inferences.push({ start, end: start + duration, name: short(program.name), tint: program.name, about: [flags & FAILED ? "failed" : null, flags & ASYNC ? "asynchronous" : null].filter(Boolean) });
	}
	for (let i = 0; i < spans.size; i++) {
		const kind = spans.kind[i], start = spans.start[i], end = start + spans.duration[i], name = names[spans.name[i]], detail = spans.detail[i];

		if (kind === SPAN.job)
			continue;
		const to = group(spans.thread[i]);
		if (kind === SPAN.operator)
			to.operators.push({ start, end, name, tint: names[detail] || name, about: detail ? [names[detail]] : null });
		else if (kind === SPAN.blocked)
			to.states.push({ start, end, name: state(data.reasons[detail]).name, colour: state(data.reasons[detail]).colour, about: name ? [`woken by ${QUOTE(name)}`] : null });
		else if (kind === SPAN.waited)
			to.states.push({ start, end, name: state("waited").name, colour: "waited", about: name ? [`${data.reasons[detail] === "preempted" ? "preempted by" : "behind"} ${QUOTE(name)}`] : null });
		else
			to[kind === SPAN.region ? "regions" : "calls"].push({ start, end, name, tint: name });
	}
	/* Inferences in full, where the rest is not shown. */
	for (const program of data.programs) {
		for (const detail of [...program.slowest, ...program.middle].filter((each) => !window_shown(data.windows, each.start)))
			add_detail(detail, program, data, group);
	}
	return groups;
}

function window_shown({ begin, width, every }, time) {
	return ((Math.floor((time - begin) / width) % every) + every) % every === 0;
}

function add_detail(detail, program, data, group) {
	const moved = (spans) => spans.map((span) => ({ ...span, depth: undefined, start: span.start + detail.start, end: span.end + detail.start }));

	for (const [thread, spans] of node_spans(detail, program))
		group(thread).operators.push(...moved(spans));
	group(detail.thread).states.push(...moved(state_spans(detail, data).filter((span) => span.colour !== "cpu")));
	for (const call of detail.calls)
		group(call.thread).calls.push(...moved([{ ...call, tint: call.name }]));
}

const KINDS = [["inferences", "", { most: 12 }], ["operators", "operators", { most: 8 }], ["states", "not running", { most: 1, thin: true }], ["calls", "other calls", { most: 4, thin: true }], ["regions", "regions", { most: 8 }]];

/* Of the threads with most inferences. */
function timeline_tracks(data, most) {
	const tracks = data.programs.filter((each) => each.series.some(Boolean)).slice(0, 6).map((program) => series_track(short(program.name), program.series, { bins: data.bins, show: count }));
	const groups = [...thread_groups(data)].sort((a, b) => b[1].inferences.length - a[1].inferences.length || b[1].operators.length - a[1].operators.length);
	let overlapping = 0;

	for (const [index, group] of groups.slice(0, most)) {
		const title = thread_title(data.threads[index]), before = tracks.length;

		for (const [key, name, options] of KINDS) {
			if (group[key].length)
				tracks.push(span_track(tracks.length > before ? `\u2003${name}` : name ? `${title} ${name}` : title, group[key], options));
		}
		overlapping += sum(tracks.slice(before), (each) => each.left_out);
	}
	return { tracks, left_out: Math.max(0, groups.length - most), overlapping };
}

const TIMELINE_THREADS = 24;

function timeline_section(data, range) {
	const { tracks, left_out, overlapping } = timeline_tracks(data, TIMELINE_THREADS);
	const view = new Tracks(range, tracks, { label: "Timeline of the recording", windows: data.windows });

	return { view, element: section("timeline", "Timeline", "From the whole recording down to one operator.",
		data.windows.every > 1 ? tag("p", { class: "note" }, `Operators, waits and calls are shown where the background is light: all of ${duration(data.windows.width)} in each ${duration(data.windows.width * data.windows.every)}; and those of the inferences that are here in full.`) : null,
		left_out ? tag("p", { class: "note" }, `The ${TIMELINE_THREADS} threads with most inferences are shown, ${count(left_out)} are not.`) : null,
		overlapping ? tag("p", { class: "note" }, `${counted(overlapping, "span")} not shown: they overlap too many others.`) : null, view.element) };
}

/* ---- devices and counters ---- */

function queue_title(queue) {
	return `${queue.device} ${queue.engine}`.trim() || queue.driver;
}

/* Failed jobs, errors and resets, and memory events: instants on the axis. */
function driver_tracks(data) {
	const spans = (memory) => data.driver_events.filter((each) => (each.total.kind === DRIVER_MEMORY) === memory).map(({ total, time, size }) => ({ start: time, end: time + 1,
		name: `${DRIVER_KINDS[total.kind]} ${total.event}`, colour: memory ? "io" : "bad", ink: "page",
		about: [total.driver, queue_title(total), total.status !== undefined ? `status ${total.status}` : null, size ? bytes(size) : null].filter(Boolean) }));
	const errors = spans(false), memory = spans(true);

	return [errors.length ? span_track("errors of drivers", errors, { most: 4 }) : null, memory.length ? span_track("memory events", memory, { most: 4 }) : null].filter(Boolean);
}

function driver_table(data, memory, caption) {
	const rows = data.driver_totals.filter((each) => (each.kind === DRIVER_MEMORY) === memory);

	return rows.length ? table([
		{ title: memory ? "Event" : "Event or job", of: (row) => row.event || "job", head: true },
		...(memory ? [] : [{ title: "What", of: (row) => DRIVER_KINDS[row.kind] }]),
		{ title: "Driver", of: (row) => row.driver }, { title: "Device", of: (row) => `${row.device} ${row.engine}`.trim() },
		{ title: "Status", of: (row) => row.status ?? -Infinity, cell: (row) => row.status === undefined ? "\u2013" : `${row.status}`, number: true },
		{ title: "Times", of: (row) => row.count, cell: (row) => count(row.count), number: true },
		...(memory ? [{ title: "Bytes", of: (row) => row.bytes || 0, cell: (row) => row.bytes ? bytes(row.bytes) : "\u2013", number: true }] : []),
		{ title: "First at", of: (row) => row.first, cell: (row) => moment(row.first), number: true }, { title: "Last at", of: (row) => row.last, cell: (row) => moment(row.last), number: true },
	], rows, { caption, sort: memory ? 4 : 5, limit: 20 }).element : null;
}

function devices_section(data, range) {
	const tracks = driver_tracks(data), errors = driver_table(data, false, "Errors of drivers"), memory = driver_table(data, true, "Memory events of drivers");

	const jobs = new Map(data.queues.map((each) => [each.id, []])), { spans } = data;

	for (let i = 0; i < spans.size; i++) {
		if (spans.kind[i] === SPAN.job && jobs.has(spans.thread[i]))
			jobs.get(spans.thread[i]).push({ start: spans.start[i], end: spans.start[i] + spans.duration[i], name: data.names[spans.name[i]] || "job", colour: "device", ink: "page",
				about: spans.detail[i] ? [`${duration(spans.detail[i] * 1024)} in the queue`] : null });
	}
	for (const queue of data.queues) {
		tracks.push(series_track(queue_title(queue), queue.busy, { bins: data.bins, most: 1, show: (value) => `${(100 * value).toFixed(0)} %`, tint: "device" }));
		if (queue.waiting.some(Boolean))
			tracks.push(series_track("\u2003jobs waiting", queue.waiting, { bins: data.bins, show: (value) => value.toFixed(1), tint: "queue" }));
		if (jobs.get(queue.id).length)
			tracks.push(span_track("\u2003jobs", jobs.get(queue.id), { most: 4 }));
	}
	for (const counter of data.counters) {
		const show = (value) => `${compact(value)}${counter.unit ? ` ${counter.unit}` : ""}`;

		tracks.push(series_track(counter.name, counter.mean, { bins: data.bins, low: counter.min, high: counter.max, show, tint: "cpu" }));
	}
	if (!tracks.length)
		return section("devices", "Devices and counters", null, tag("p", { class: "empty" }, "No driver's jobs and no counters were recorded: record --counters reads counters."));
	return section("devices", "Devices and counters", "On the axis of the timeline: both zoom together.",
		new Tracks(range, tracks, { label: "Devices and counters", windows: data.queues.length ? data.windows : null }).element,
		errors ? [tag("h3", { class: "bad", style: { marginTop: "10px" } }, "Errors of drivers"), errors] : null,
		memory ? tag("details", {}, tag("summary", {}, "Memory events as a table"), memory) : null,
		data.queues.length ? tag("details", {}, tag("summary", {}, "Queues as a table"), table([
			{ title: "Queue", of: queue_title, head: true }, { title: "Driver", of: (row) => row.driver },
			{ title: "Jobs", of: (row) => row.total, cell: (row) => count(row.total), number: true },
			{ title: "Failed", of: (row) => row.failed, cell: (row) => count(row.failed), number: true },
			{ title: "Busy", of: (row) => row.busy_ns, cell: (row) => `${duration(row.busy_ns)} (${percent(row.busy_ns / data.duration)})`, number: true },
		], data.queues, { caption: "Queues of devices", sort: 4 }).element) : null,
		data.counters.length ? tag("details", {}, tag("summary", {}, "Counters as a table"), table([
			{ title: "Counter", of: (row) => row.name, head: true }, { title: "Unit", of: (row) => row.unit || "" },
			...[["Lowest", "min", Math.min], ["Highest", "max", Math.max]].map(([title, key, of]) => {
				const value = (row) => row[key].reduce((all, each) => each === null ? all : all === null ? each : of(all, each), null);

				return { title, of: value, cell: (row) => value(row) === null ? "\u2013" : compact(value(row)), number: true };
			}),
		], data.counters, { caption: "Counters" }).element) : null);
}

/* ---- what is left ---- */

function code_section(data) {
	if (!data.code.length)
		return section("code", "Code objects", null, tag("p", { class: "empty" }, "No code objects were recorded: record --codeobj does."));
	return section("code", "Code objects", data.code_total > data.code.length ? `The first ${count(data.code.length)} of ${count(data.code_total)}.` : null, table([
		{ title: "Name", of: (row) => row.name || row.uri || row.kind, head: true },
		{ title: "Kind", of: (row) => row.kind }, { title: "Machine", of: (row) => row.machine || "" },
		{ title: "Size", of: (row) => row.size || 0, cell: (row) => row.size ? bytes(row.size) : "\u2013", number: true },
		{ title: "Loaded", of: (row) => row.loads, cell: (row) => times(row.loads), number: true },
		{ title: "Unloaded", of: (row) => row.unloads, cell: (row) => row.unloads ? times(row.unloads) : "\u2013", number: true },
		{ title: "Functions", of: (row) => row.functions, cell: (row) => count(row.functions), number: true },
		{ title: "Missing", cell: (row) => row.error || (row.incomplete ? `bytes of ${times(row.incomplete)}` : "") },
		{ title: "SHA-256", cell: (row) => row.sha256 ? tag("code", { title: row.sha256 }, row.sha256.slice(0, 16)) : "\u2013" },
	], data.code, { caption: "Code objects", limit: 25, tall: data.code.length > 12 }).element);
}

function calls_section(data) {
	const columns = (title) => [
		{ title, of: (row) => row.name, head: true }, { title: "Runtime", of: (row) => row.runtime }, { title: "Process", of: (row) => row.pid, number: true },
		{ title: "Calls", of: (row) => row.calls, cell: (row) => count(row.calls), number: true }, { title: "Failed", of: (row) => row.failed, cell: (row) => count(row.failed), number: true },
		...["p50", "p99", "max"].map((name) => ({ title: name, of: (row) => row.duration_ns ? row.duration_ns[name] : -1, cell: (row) => row.duration_ns ? duration(row.duration_ns[name]) : "\u2013", number: true })),
	];
	const { functions, regions } = data.summary;

	return section("calls", "Other calls and regions", null, functions.length ? table(columns("Function"), functions, { caption: "Functions", sort: 3, limit: 15 }).element : tag("p", { class: "empty" }, "No other calls were recorded."),
		regions.length ? [tag("h3", { style: { marginTop: "10px" } }, "Regions"), table(columns("Region"), regions, { caption: "Regions", sort: 3, limit: 15 }).element] : null);
}
