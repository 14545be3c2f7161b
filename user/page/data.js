/* SPDX-License-Identifier: BSD-2-Clause */
/* The document that the page carries (document.c): compressed columns, which become objects here. */

const COMPONENTS = {
	cpu: ["on CPU", "cpu"], waited: ["waiting for a CPU", "waited"], futex: ["lock (futex)", "futex"], poll: ["poll", "poll"], io: ["I/O", "io"],
	ioctl: ["ioctl", "ioctl"], fault: ["page fault", "fault"], sleep: ["sleep", "sleep"], other: ["blocked otherwise", "other"],
	blocked: ["blocked", "sleep"], unknown: ["not known", "unknown"],
};
const FAILED = 1, ASYNC = 2, STATES = 32;
const SPAN = { operator: 0, blocked: 1, call: 2, region: 3, job: 4, waited: 5 };

async function unpack(element) {
	const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));

	element.remove();
	return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/* Rows of values one behind the other, to objects. */
function objects(flat, names) {
	const found = [];

	for (let i = 0; i < flat.length; i += names.length) {
		const row = {};

		names.forEach((name, j) => { row[name] = flat[i + j]; });
		found.push(row);
	}
	return found;
}

function read_detail(each, data) {
	const { names } = data;

	each.nodes = objects(each.nodes, ["operator", "thread", "depth", "start", "end", "self"]);
	each.slices = objects(each.slices, ["reason", "start", "woken", "end", "next", "waker", "operator"]);
	each.jobs = objects(each.jobs, ["name", "queue", "queued", "runs", "done", "failed"]);
	each.calls = objects(each.calls, ["name", "thread", "start", "end"]);
	for (const slice of each.slices) {
		slice.reason = data.reasons[slice.reason];
		slice.next = names[slice.next];
		slice.waker = names[slice.waker];
	}
	for (const item of [...each.jobs, ...each.calls])
		item.name = names[item.name];
	each.failed = !!(each.flags & FAILED);
	each.states = !!(each.flags & STATES);
}

function read_program(program, data) {
	const rows = new Map();
	let start = 0;

	for (const each of [...program.slowest, ...program.middle])
		read_detail(each, data);
	for (let i = 0; i < program.heat.length; i += 3)
		rows.set(program.heat[i + 1], (rows.get(program.heat[i + 1]) || 0) + program.heat[i + 2]);
	program.histogram = [...rows].sort((a, b) => a[0] - b[0]);
	program.samples = objects(program.samples, ["start", "duration", "thread", "flags"]);
	for (const sample of program.samples)
		sample.start = start += sample.start;
}

/* Columns: many objects of their own would take long. */
function read_spans(flat) {
	const size = flat.length / 6, spans = { size };
	let start = 0;

	["kind", "start", "duration", "thread", "name", "detail"].forEach((name, j) => {
		const column = new Float64Array(size);

		for (let i = 0; i < size; i++)
			column[i] = flat[6 * i + j];
		spans[name] = column;
	});
	for (let i = 0; i < size; i++)
		spans.start[i] = start += spans.start[i];
	return spans;
}

/* What drivers have reported; kinds as in spans.h. */
const DRIVER_KINDS = ["failed job", "error", "reset", "memory"], DRIVER_MEMORY = 3;

function read_driver_events(data) {
	let time = 0;

	for (const each of data.driver_totals) {
		for (const key of ["driver", "event", "device", "engine"])
			each[key] = data.names[each[key]];
	}
	data.driver_events = objects(data.driver_events, ["total", "time", "size"]);
	for (const each of data.driver_events) {
		each.time = time += each.time;
		each.total = data.driver_totals[each.total];
	}
}

function read_flame(graph) {
	const nodes = objects(graph.nodes, ["parent", "label", "self", "count"]);

	for (const name of ["parent", "label", "self", "count"])
		graph[name] = nodes.map((each) => each[name]);
}

async function read_data() {
	const data = await unpack(document.getElementById("data"));

	if (data.comparison) {
		data.comparison.programs.forEach((each, i) => Object.assign(each, { durations: data.durations[i] }));
		return data;
	}
	data.components = data.components.map((key) => ({ key, name: COMPONENTS[key][0], colour: COMPONENTS[key][1] }));
	data.component = Object.fromEntries(data.components.map((each) => [each.key, each]));
	data.end = data.begin + data.duration;
	data.bins = { count: data.bins, width: data.bin, begin: data.begin };
	data.spans = read_spans(data.spans);
	data.programs.forEach((each) => read_program(each, data));
	read_driver_events(data);
	data.flames.forEach(read_flame);
	data.queue = new Map(data.queues.map((each) => [each.id, each]));
	return data;
}
