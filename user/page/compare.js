/* SPDX-License-Identifier: BSD-2-Clause */
/* The slowest inferences beside a typical one of the same program: in words, in components, as timelines on one scale. */

const QUOTE = (text) => `\u201c${plain(text)}\u201d`;

/* What a thread did, in order: it ran between the slices. */
function state_spans(detail, data) {
	const spans = [];
	let at = 0;

	const add = (start, end, key, about) => {
		if (end > start)
			spans.push({ start, end, name: data.component[key].name, colour: data.component[key].colour, ink: "page", about });
	};
	for (const slice of detail.slices) {
		const blocked = slice.reason;

		add(at, slice.start, "cpu");
		if (blocked !== "preempted")
			add(slice.start, slice.woken, blocked, [slice.waker ? `woken by ${QUOTE(slice.waker)}` : null].filter(Boolean));
		add(slice.woken, slice.end, "waited", [slice.next ? `${blocked === "preempted" ? "preempted by" : "behind"} ${QUOTE(slice.next)}` : null].filter(Boolean));
		at = Math.max(at, slice.end);
	}
	add(at, detail.duration, "cpu");
	return spans;
}

function total_spans(detail, data) {
	const spans = [];
	let at = 0;

	detail.components.forEach((each, i) => {
		if (each)
			spans.push({ start: at, end: at += each, name: data.components[i].name, colour: data.components[i].colour, ink: "page", about: ["sum over the inference, not in its order"] });
	});
	return spans;
}

function node_spans(detail, program) {
	const by_thread = new Map();

	for (const node of detail.nodes) {
		const operator = program.operators[node.operator];

		if (!by_thread.has(node.thread))
			by_thread.set(node.thread, []);
		by_thread.get(node.thread).push({ start: node.start, end: node.end, depth: node.depth, name: operator ? operator.label : "(others)",
			tint: operator ? operator.type || operator.label : "",
			about: [operator && operator.type, `self ${duration(node.self)}`, operator && operator.typical_times ? `typically ${duration(operator.typical_self / operator.typical_times)} self` : null].filter(Boolean) });
	}
	return by_thread;
}

function job_spans(detail, data) {
	const spans = [];

	for (const job of detail.jobs) {
		const queue = data.queue.get(job.queue), name = job.name || "job", where = queue ? queue_title(queue) : "";

		if (job.queued >= 0 && job.runs > job.queued)
			spans.push({ start: job.queued, end: job.runs, name: `${name} queued`, colour: "queue", about: [where] });
		if (job.done > Math.max(job.runs, job.queued))
			spans.push({ start: Math.max(job.runs, job.queued), end: job.done, name, colour: "device", ink: "page", about: [where, job.failed ? "failed" : null].filter(Boolean) });
	}
	return spans;
}

/* Tracks of one inference, times from its begin. */
function detail_tracks(detail, program, data, prefix) {
	const tracks = [], name = `${prefix}: `;

	if (detail.slices.length || (detail.states && !detail.components.some((each, i) => i > 0 && each)))
		tracks.push(span_track(`${name}thread`, state_spans(detail, data), { most: 1 }));
	else if (detail.components.some((each, i) => each && data.components[i].key !== "unknown"))
		tracks.push(span_track(`${name}thread, sums`, total_spans(detail, data), { most: 1 }));
	if (detail.calls.length)
		tracks.push(span_track(`${name}calls`, detail.calls.map((call) => ({ start: call.start, end: call.end, name: call.name, tint: call.name, about: [thread_title(data.threads[call.thread])] })), { most: 6 }));
	for (const [thread, spans] of node_spans(detail, program))
		tracks.push(span_track(thread === detail.thread ? `${name}operators` : `${name}${thread_title(data.threads[thread])}`, spans, { most: 8 }));
	if (detail.jobs.length)
		tracks.push(span_track(`${name}jobs`, job_spans(detail, data), { most: 8 }));
	return tracks;
}

/* ---- in words ---- */

function most_of(slices, who, time) {
	const found = new Map();

	for (const slice of slices) {
		if (!slice[who])
			continue;
		const entry = found.get(slice[who]) || { name: slice[who], times: 0, time: 0 };

		entry.times++;
		entry.time += time(slice);
		found.set(slice[who], entry);
	}
	return [...found.values()].sort((a, b) => b.time - a.time)[0];
}

function times(number) {
	return number === 1 ? "once" : number === 2 ? "twice" : `${count(number)} times`;
}

/* What a component's longer time is due to. */
function evidence(key, detail, program, data) {
	if (key === "waited") {
		const preempted = detail.slices.filter((each) => each.reason === "preempted");
		const by = most_of(preempted, "next", (each) => each.end - each.start);

		return by ? `preempted ${times(preempted.length)}, ${by.times === preempted.length ? "" : "mostly "}by ${QUOTE(by.name)}` : null;
	}
	if (key === "cpu") {
		const slower = slower_operators(detail, program, true)[0];

		return slower && slower.more > 0 ? `${duration(slower.more)} of it in operator ${QUOTE(slower.label)}` : null;
	}
	const blocked = detail.slices.filter((each) => each.reason === key), by = most_of(blocked, "waker", (each) => each.woken - each.start);
	return blocked.length ? `${times(blocked.length)}${by ? `, woken by ${QUOTE(by.name)}` : ""}` : null;
}

/* Operators of an inference by how much longer they took than typically, ns of self time; on_cpu: of that which they ran. */
function slower_operators(detail, program, on_cpu = false) {
	const found = new Map();

	for (const node of detail.nodes) {
		if (program.operators[node.operator])
			found.set(node.operator, (found.get(node.operator) || 0) + node.self);
	}
	for (const slice of on_cpu ? detail.slices : []) {
		if (found.has(slice.operator))
			found.set(slice.operator, found.get(slice.operator) - (slice.end - slice.start));
	}
	return [...found].map(([index, self]) => {
		const operator = program.operators[index], typical = on_cpu && operator.typical_cpu ? operator.typical_cpu : operator.typical_self;

		return { label: operator.label, self, typical, more: self - typical };
	}).sort((a, b) => b.more - a.more);
}

/* {key, value, typical, more}, the largest difference first. */
function differences(detail, program, data) {
	return data.components.map((component, i) => ({ key: component.key, index: i, value: detail.components[i], typical: program.typical.components[i],
		more: detail.components[i] - program.typical.components[i] })).sort((a, b) => b.more - a.more);
}

const VERBS = { cpu: "on CPU", waited: "waited for a CPU", futex: "blocked on a lock", poll: "blocked in poll", io: "blocked on I/O", ioctl: "blocked in ioctl", fault: "blocked in page faults",
	sleep: "slept", other: "blocked otherwise", blocked: "blocked", unknown: "not known" };

function in_words(detail, program, data) {
	const more = detail.duration - program.typical.duration, parts = [], unknown = data.components.findIndex((each) => each.key === "unknown");
	let named = 0;

	if (more > 0 && detail.components[unknown] > detail.duration * 0.9)
		return `${duration(more)} more than typical; ${detail.flags & ASYNC ? "between its enqueue and its wait no thread belongs to it" : "what its thread did was not recorded"}.`;

	for (const each of differences(detail, program, data)) {
		if (parts.length === 3 || each.more < more * 0.08 || each.more < 1000)
			break;
		const due = evidence(each.key, detail, program, data);

		parts.push(`${VERBS[each.key]} ${duration(each.more)} longer${due ? ` (${due})` : ""}`);
		named += each.more;
	}
	if (more <= 0)
		return "Not slower than a typical one.";
	const rest = more - named;
	return `${duration(more)} more than typical: ${parts.join("; ") || "not explained"}${parts.length && rest > more * 0.08 ? `; ${duration(rest)} in smaller parts` : ""}.`;
}

/* ---- the part of the page ---- */

/* What the slowest percent have in common, as `xputrace explain` has it. */
function explanation(program) {
	const { slow, explanation: known } = program, causes = known ? [...known.causes].sort((a, b) => b.difference - a.difference) : [];

	if (!known || !slow.count || !causes.length)
		return null;
	return [tag("p", {}, `The slowest 1 % (${count(slow.count)} of ${duration(slow.least)} or more) take ${duration(slow.duration)} on average, ${duration(known.difference)} more than typical ones. `,
		`${percent(known.explained)} of that is explained.`, known.missing ? tag("span", { class: "dim" }, ` ${known.missing}.`) : null),
	table([
		{ title: "Because of", cell: (row) => [row.title, row.name ? ` ${row.name}` : "", row.explained ? null : tag("span", { class: "dim" }, " (not explained)")], head: true, class: "words" },
		{ title: "Longer by", cell: (row) => duration(row.difference), number: true },
		{ title: "of all", cell: (row) => [part(row.share), ` ${percent(row.share)}`], number: true },
		{ title: "Main cause of", cell: (row) => row.inferences ? `${count(row.inferences)} of them` : "", number: true },
		{ title: "Evidence", cell: (row) => row.evidence.split("\n").map((line) => tag("div", {}, line)), class: "words" },
	], causes, { caption: "Why the slowest inferences take longer", limit: Math.max(1, causes.filter((each) => each.share >= 0.01).length) }).element,
	tag("h3", { style: { marginTop: "12px" } }, "One by one")];
}

function component_table(detail, program, data) {
	const rows = differences(detail, program, data).filter((each) => each.value || each.typical);
	const widest = Math.max(1, ...rows.map((each) => Math.abs(each.more)));

	for (const [name, value, typical] of [["Queue time of its jobs", detail.queue, program.typical.queue], ["Device time of its jobs", detail.device, program.typical.device], ["Of it tracing", detail.tracing, program.typical.tracing]]) {
		if (value || typical)
			rows.push({ name, value, typical, more: value - typical, beside: true });
	}
	return table([
		{ title: "Where the time went", cell: (row) => row.name || [tag("i", { style: { display: "inline-block", width: "9px", height: "9px", marginRight: "6px", background: `var(--${data.components[row.index].colour})` } }), data.components[row.index].name], head: true },
		{ title: "Typical", cell: (row) => duration(row.typical), number: true },
		{ title: "This one", cell: (row) => duration(row.value), number: true },
		{ title: "Difference", cell: (row) => tag("span", { class: row.more > widest * 0.05 ? "bad" : null }, `${row.more > 0 ? "+" : ""}${duration(row.more)}`), number: true },
		{ title: "", cell: (row) => part(Math.max(0, row.more) / widest) },
	], rows, { caption: "Components of this inference beside the typical one" }).element;
}

function operator_differences(detail, program) {
	const rows = slower_operators(detail, program).slice(0, 8).filter((each) => each.more > 0);

	return rows.length ? table([{ title: "Operators that took longer", of: (row) => row.label, head: true },
		{ title: "Typical", of: (row) => row.typical, cell: (row) => duration(row.typical), number: true },
		{ title: "This one", of: (row) => row.self, cell: (row) => duration(row.self), number: true },
		{ title: "Difference", of: (row) => row.more, cell: (row) => `+${duration(row.more)}`, number: true }], rows, { caption: "Operators that took longer", sort: 3 }).element : null;
}

/* Of a program with few inferences, that nearest to the median. */
function nearest(program) {
	return [...program.slowest].sort((a, b) => Math.abs(a.duration - program.latency.p50) - Math.abs(b.duration - program.latency.p50))[0];
}

function compare_part(program, data, go) {
	if (!program.slowest.length)
		return tag("p", { class: "empty" }, "No inference of it was kept in full.");
	const typical = program.middle[0] || nearest(program), words = tag("p", { class: "note", "aria-live": "polite" }), tables = tag("div", { class: "columns" });
	const range = new Range(0, 1), view = new Tracks(range, [], { label: "A slow inference and a typical one on the same scale", axis: (value) => `${duration(value)} after its begin` });
	let shown = null;

	function show(detail) {
		shown = detail;
		replace(words, tag("b", {}, duration(detail.duration)), " ", in_words(detail, program, data));
		range.high = Math.max(detail.duration, typical.duration) * 1.02;
		view.show([...detail_tracks(detail, program, data, "slow"), ...detail_tracks(typical, program, data, "typical")]);
		range.set(0, range.high);
		replace(tables, component_table(detail, program, data), operator_differences(detail, program));
	}

	const rows = table([
		{ title: "Took", of: (row) => row.duration, cell: (row) => duration(row.duration), number: true, head: true },
		{ title: "\u00d7 typical", of: (row) => row.duration / program.typical.duration, cell: (row) => (row.duration / program.typical.duration).toFixed(1), number: true },
		{ title: "At", of: (row) => row.start, cell: (row) => moment(row.start), number: true },
		{ title: "Thread", of: (row) => thread_title(data.threads[row.thread]) },
		{ title: "Where its time went", cell: (row) => stack_of(row.components, data) },
		{ title: "What is different", cell: (row) => [row.failed ? tag("span", { class: "bad" }, "failed; ") : null, in_words(row, program, data)], class: "words" },
	], program.slowest, { caption: "Slowest inferences", chosen: show, sort: 0, limit: 10, selected: program.slowest[0] });
	show(program.slowest[0]);
	return [explanation(program), rows.element, tag("h3", { style: { marginTop: "12px" } }, "This one above, a typical one below"), words,
		tag("div", { class: "bar" }, tag("button", { class: "tool", onclick: () => go(shown.start - shown.duration * 0.2, shown.start + shown.duration * 1.2) }, "Show it in the timeline"),
			tag("button", { class: "tool", onclick: () => range.set(0, shown.duration * 1.02) }, "Fit this one"),
			tag("button", { class: "tool", onclick: () => range.set(0, typical.duration * 1.02) }, "Fit the typical one")),
		view.element, tables];
}
