/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of a comparison: what the sides are, and of each program what has changed, by how much, and whether that is more than noise. */

const COMPARISON_PARTS = [["overview", "Comparison"], ["programs", "Programs"], ["latency", "Latency"], ["rows", "What has changed"], ["counters", "Counters"], ["unmatched", "On one side only"], ["recordings", "Recordings"]];
const SIDES = [["before", "Before"], ["after", "After"]];

/* ---- figures ---- */

/* A value of a row, as the text has it. */
function amount(value, unit) {
	if (value === null || value === undefined)
		return "\u2013";
	if (unit === "ns")
		return duration(value);
	if (unit === "1/s")
		return `${rate(value)}/s`;
	const number = Math.abs(value) >= 1e4 ? compact(value) : `${+value.toPrecision(4)}`;
	return unit ? `${number} ${unit}` : number;
}

function signed(value, unit) {
	return value === null ? "\u2013" : `${value < 0 ? "\u2212" : "+"}${amount(Math.abs(value), unit)}`;
}

function change_percent(value) {
	return value === null ? "\u2013" : `${value < 0 ? "\u2212" : "+"}${Math.abs(value).toFixed(Math.abs(value) < 99.95 ? 1 : 0)} %`;
}

function probability(p) {
	return p === null ? "\u2013" : p < 0.0001 ? "<0.0001" : p.toFixed(p < 0.01 ? 4 : 3);
}

function row_name(row) {
	return ["operator", "counter"].includes(row.kind) ? `${row.kind} ${row.name}` : row.name;
}

/* What a change of the row means, if it is more than noise: "bad", "good", or null. Of counters it is not known. */
function verdict(row) {
	if (!row.significant || row.kind === "counter" || !row.change)
		return null;
	return (row.change > 0) === (row.kind === "throughput") ? "good" : "bad";
}

function find_row(program, name) {
	return program.rows.find((each) => each.name === name && each.kind !== "operator");
}

/* ---- the sides ---- */

/* What a side's recordings have in common, or each of them. */
function distinct(list) {
	const found = [...new Set(list.filter(Boolean))];

	return found.length > 3 ? [...found.slice(0, 3), `and ${count(found.length - 3)} more`].join(", ") : found.join(", ");
}

/* Sums over the recordings of a side, as the summary of one has them. */
function side_totals(side, data) {
	const lost = {}, worst = side.recordings.filter((each) => each.tracing);

	for (const each of side.recordings) {
		for (const [cause, number] of Object.entries(each.lost))
			lost[cause] = (lost[cause] || 0) + number;
	}
	const costs = Object.fromEntries(["calls", "cost", "attach", "detach", "waits", "wait_time"].map((key) => [key, sum(side.recordings, (each) => each.costs[key])]));
	return { losses: data.losses, costs, summary: { lost, duration_ns: sum(side.recordings, (each) => each.duration), collector_cpu_ns: sum(side.recordings, (each) => each.collector_cpu),
		collector_memory_bytes: Math.max(0, ...side.recordings.map((each) => each.collector_memory)),
		programs: worst.map((each) => ({ name: each.traced, tracing_ns: { p50: each.tracing }, latency_ns: { p50: each.latency } })) } };
}

function recorded_kinds(side) {
	return ["inferences", side.operators && "operators", side.states && "what threads did", side.reasons && "why they waited", side.jobs && "jobs of devices",
		side.stacks && "stacks", side.counters && counted(side.counters, "counter")].filter(Boolean).join(", ");
}

function began(recording) {
	return recording.began_ms ? `${new Date(recording.began_ms).toISOString().replace("T", " ").slice(0, 19)} UTC` : "";
}

function recordings_table(side, title) {
	return tag("details", {}, tag("summary", {}, `${counted(side.all_recordings, "recording")}${side.all_recordings > side.recordings.length ? `, of which ${count(side.recordings.length)} are here` : ""}`), table([
		{ title: "Recording", of: (row) => row.file, head: true }, { title: "Began", of: began },
		{ title: "Recorded", of: (row) => row.duration, cell: (row) => duration(row.duration), number: true },
		{ title: "Inferences", of: (row) => row.inferences, cell: (row) => count(row.inferences), number: true },
		{ title: "Failed", of: (row) => row.failed, cell: (row) => count(row.failed), number: true },
		{ title: "Lost", of: (row) => sum(Object.values(row.lost), (each) => each), cell: (row) => count(sum(Object.values(row.lost), (each) => each)), number: true },
		{ title: "Collector", of: (row) => row.collector_cpu / row.duration, cell: (row) => `${percent(row.collector_cpu / row.duration)} of a CPU`, number: true },
	], side.recordings, { caption: `Recordings ${title}`, limit: 20 }).element);
}

function side_part(side, title, data) {
	const all = side.recordings, totals = side_totals(side, data), cut_short = all.filter((each) => !each.complete).length;

	return tag("div", { class: "block" }, tag("h3", {}, title), pairs([
		["Recordings", distinct(all.map((each) => each.file))],
		["Command", distinct(all.map((each) => each.command))],
		["Machine", distinct(all.map((each) => `${each.host}, Linux ${each.kernel}, ${each.machine}`))],
		["Began", all.length === 1 ? began(all[0]) : null],
		["Recorded by", `xputrace ${distinct(all.map((each) => each.version))}`],
		["Recorded", `${duration(totals.summary.duration_ns)}: ${recorded_kinds(side)}`],
		["Inferences", `${count(sum(all, (each) => each.inferences))}, ${count(sum(all, (each) => each.failed))} failed`],
	]), cut_short ? tag("p", { class: "note bad" }, all.length === 1 ? "The recording was cut short: this is what was complete." : `${counted(cut_short, "recording")} ${cut_short === 1 ? "was" : "were"} cut short.`) : null,
	side.all_recordings > 1 ? recordings_table(side, title.toLowerCase()) : null,
	tag("h3", { style: { marginTop: "10px" } }, "What it cost"), cost_list(totals),
	tag("h3", { style: { marginTop: "10px" } }, "What is missing"), loss_list(totals));
}

function side_name(side) {
	return side.all_recordings === 1 ? short(side.recordings[0].file) : counted(side.all_recordings, "recording");
}

function checks_table(checks) {
	const result = (row) => row.failed ? tag("span", { class: "bad" }, "FAILED") : row.row ? tag("span", { class: "good" }, "passed") : "not checked";

	return checks.length ? [tag("h3", { style: { marginTop: "12px" } }, "Conditions"), table([
		{ title: "Condition", of: (row) => row.condition, head: true }, { title: "Result", cell: result },
		{ title: "Program", of: (row) => row.program || "" },
		{ title: "Before", cell: (row) => row.row ? amount(row.before, row.unit) : "\u2013", number: true }, { title: "After", cell: (row) => row.row ? amount(row.after, row.unit) : "\u2013", number: true },
		{ title: "Change", cell: (row) => row.row ? change_percent(row.percent) : "\u2013", number: true }, { title: "P", cell: (row) => row.row ? probability(row.adjusted) : "\u2013", number: true },
		{ title: "", cell: (row) => !row.row ? "there is no such row of this unit on both sides" : row.beyond && !row.failed ? (row.adjusted === null ? "too little to test" : "not more than noise") : "", class: "words" },
	], checks, { caption: "Conditions" }).element] : null;
}

function comparison_overview(data) {
	const { comparison, sides } = data, lost = sides.map((side) => sum(side.recordings, (each) => sum(Object.values(each.lost), (number) => number)));
	const cpu = sides.map((side) => sum(side.recordings, (each) => each.collector_cpu) / sum(side.recordings, (each) => each.duration));
	const failed = comparison.checks.filter((each) => each.failed).length, different = comparison.programs.filter((program) => program.rows.some((row) => row.significant)).length;

	/* A row of a condition is of the unit that rows with its name have. */
	for (const check of comparison.checks)
		check.unit = [...comparison.programs.flatMap((program) => program.rows), ...comparison.counters].find((row) => row.name === check.row)?.unit || "";
	return section("overview", "Comparison", null,
		tag("dl", { class: "figures", style: { margin: "0 0 14px" } },
			figure("Rows that differ", count(comparison.significant), `of ${count(comparison.tested)} by more than noise`),
			figure("Programs on both sides", count(data.kept.all_programs), `${count(different)} with such rows`),
			figure("On one side only", count(data.kept.all_unmatched)),
			comparison.checks.length ? figure("Conditions", tag("span", { class: failed ? "bad" : "good" }, failed ? `${count(failed)} failed` : "none failed"), `of ${count(comparison.checks.length)}`) : null,
			figure("Lost", tag("span", { class: lost[0] + lost[1] ? "bad" : "good" }, `${count(lost[0])} \u2192 ${count(lost[1])}`)),
			figure("Collector", `${percent(cpu[0])} \u2192 ${percent(cpu[1])}`, "of a CPU")),
		data.summary.trim().split("\n").map((line) => tag("p", {}, line)),
		comparison.notes.map((note) => tag("p", { class: "note" }, `note: ${note}`)),
		data.kept.all_programs > comparison.programs.length ? tag("p", { class: "note" }, `The ${count(comparison.programs.length)} most significant programs are here, of ${count(data.kept.all_programs)}.`) : null,
		data.kept.all_rows > data.kept.rows ? tag("p", { class: "note" }, `${count(data.kept.rows)} rows are here, of ${count(data.kept.all_rows)}: the most significant of each program.`) : null,
		pairs(SIDES.map(([, title], i) => [title, distinct(sides[i].recordings.map((each) => each.file))])),
		checks_table(comparison.checks));
}

/* ---- programs ---- */

/* "1600 → 1600 inferences, matched by hash with x of y". */
function program_words(program) {
	return [` of ${program.runtime} in ${program.process}: ${count(program.inferences_before)} \u2192 ${counted(program.inferences_after, "inference")}`,
		program.matched_by === "name" ? null : `, matched by ${program.matched_by} with ${program.name_before} of ${program.process_before}`,
		program.model_changed ? ", the model has changed" : null, program.tested_by === "blocks" ? ", tested by blocks" : null];
}

function comparison_programs(data, chosen) {
	const { comparison } = data, field = tag("input", { type: "search", placeholder: "name, runtime or process", "aria-label": "Find programs" });
	const percent_of = (title, name) => ({ title, of: (row) => find_row(row, name)?.percent ?? -Infinity, number: true, cell: (row) => {
		const found = find_row(row, name);

		return found ? tag("span", { class: found.significant ? verdict(found) : "dim" }, `${change_percent(found.percent)}${found.significant ? " *" : ""}`) : "\u2013";
	} });
	const value_of = (title, name, side) => ({ title, of: (row) => find_row(row, name)?.[side] ?? -1, cell: (row) => amount(find_row(row, name)?.[side], find_row(row, name)?.unit), number: true });
	const rows = table([
		{ title: "Program", of: (row) => row.name, head: true },
		{ title: "Runtime", of: (row) => row.runtime },
		{ title: "Process", of: (row) => row.process },
		{ title: "Inferences before", of: (row) => row.inferences_before, cell: (row) => count(row.inferences_before), number: true },
		{ title: "after", of: (row) => row.inferences_after, cell: (row) => count(row.inferences_after), number: true },
		value_of("p50 before", "p50", "before"), value_of("after", "p50", "after"), percent_of("change", "p50"), percent_of("p99", "p99"), percent_of("Throughput", "throughput"),
		{ title: "Rows that differ", of: (row) => row.rows.filter((each) => each.significant).length, cell: (row) => `${count(row.rows.filter((each) => each.significant).length)} of ${count(row.rows.length)}`, number: true },
		{ title: "Matched by", of: (row) => row.model_changed ? `${row.matched_by}, another model` : row.matched_by },
	], comparison.programs, { caption: "Programs on both sides", chosen, tall: comparison.programs.length > 14, limit: 50, selected: comparison.programs[0] });

	field.addEventListener("input", () => {
		const text = field.value.toLowerCase();

		rows.show(comparison.programs.filter((each) => [each.name, each.runtime, each.process, each.name_before].some((name) => name.toLowerCase().includes(text))));
	});
	return section("programs", "Programs", "Choose one: what follows is about it. An asterisk marks changes that are more than noise.",
		comparison.programs.length ? [tag("div", { class: "bar" }, field), rows.element] : tag("p", { class: "empty" }, "No program is on both sides."));
}

/* ---- durations ---- */

/* Both sides as shares of their inferences in equal parts of the axis: what is higher is more frequent, whatever the bins' widths are. */
function overlay(program) {
	const { bounds, counts } = program.durations, wholes = counts.map((side) => sum(side, (each) => each) || 1), read = tag("div", { class: "read", "aria-live": "polite" });
	const low = Math.log(bounds[0]), high = Math.log(bounds[bounds.length - 1]), foot = 18, head = 44;
	const heights = counts.map((side, s) => side.map((each, i) => each / wholes[s] / Math.log(bounds[i + 1] / bounds[i])));
	const most = Math.max(1e-9, ...heights[0], ...heights[1]), limits = { low: bounds[0], high: bounds[bounds.length - 1] };
	let over = -1;

	function outline(context, place, base, values) {
		context.beginPath();
		context.moveTo(place(bounds[0]), base);
		values.forEach((value, i) => {
			const y = base - value / most * (base - head);

			context.lineTo(place(bounds[i]), y);
			context.lineTo(place(bounds[i + 1]), y);
		});
		context.lineTo(place(bounds[bounds.length - 1]), base);
	}

	function paint(context, width, height) {
		const place = (value) => 8 + (Math.log(Math.max(value, limits.low)) - low) / (high - low) * (width - 16), base = height - foot;

		if (over >= 0) {
			context.fillStyle = colour("sunken");
			context.fillRect(place(bounds[over]), head - 4, Math.max(2, place(bounds[over + 1]) - place(bounds[over])), base - head + 4);
		}
		SIDES.forEach(([key], s) => {
			outline(context, place, base, heights[s]);
			context.globalAlpha = 0.28;
			context.fillStyle = colour(key);
			context.fill();
			context.globalAlpha = 1;
			context.strokeStyle = colour(key);
			context.lineWidth = 1.5;
			context.setLineDash(s ? [] : [4, 2]);
			context.stroke();
			context.setLineDash([]);
			context.lineWidth = 1;
		});
		context.fillStyle = colour("dim");
		context.fillRect(8, base, width - 16, 1);
		for (const tick of log_ticks(limits.low, limits.high)) {
			const x = place(tick.value);

			context.fillRect(x, base, 1, tick.label ? 5 : 3);
			if (tick.label)
				fit(context, duration(tick.value).replace(/\.0+ /, " "), x + 3, base + 10, width - x - 3);
		}
		/* The medians and p99, before above after. */
		SIDES.forEach(([key], s) => {
			let taken = 0;

			for (const name of ["p50", "p99"]) {
				const value = program.durations[key].latency?.[name];

				if (value === undefined)
					continue;
				const x = place(value), text = `${name} ${duration(value)}`, wide = context.measureText(text).width, y = 8 + 15 * s;
				const at = Math.max(taken, Math.min(Math.max(2, x - wide / 2), width - wide - 2));

				context.strokeStyle = colour(key);
				context.setLineDash(s ? [] : [4, 2]);
				context.beginPath();
				context.moveTo(Math.round(x) + 0.5, y + 6);
				context.lineTo(Math.round(x) + 0.5, base);
				context.stroke();
				context.setLineDash([]);
				context.fillStyle = colour(key);
				context.fillText(text, at, y);
				taken = at + wide + 6;
			}
		});
	}

	function show(index) {
		over = Math.max(-1, Math.min(bounds.length - 2, index));
		replace(read, over < 0 ? "" : [tag("b", {}, `${duration(bounds[over])} to ${duration(bounds[over + 1])}`), SIDES.map(([key], s) => `; ${key} ${counted(counts[s][over], "inference")}, ${percent(counts[s][over] / wholes[s])}, ${percent(sum(counts[s].slice(0, over + 1), (each) => each) / wholes[s])} are not slower`)]);
		self.draw();
	}

	const words = SIDES.map(([key]) => program.durations[key].latency ? `${key}, half of the inferences took up to ${duration(program.durations[key].latency.p50)} and 99 % up to ${duration(program.durations[key].latency.p99)}` : `${key}, none is known`).join("; ");
	const self = picture(210, `Histogram of the latency of ${program.name} on both sides, logarithmic: ${words}. Arrow keys read it.`, paint, { tabindex: 0 });
	self.canvas.addEventListener("pointermove", (event) => {
		const value = Math.exp(low + (position(self.canvas, event).x - 8) / (self.width - 16) * (high - low));

		show(bounds.findIndex((bound, i) => i + 1 < bounds.length && value >= bound && value < bounds[i + 1]));
	});
	self.canvas.addEventListener("pointerleave", () => show(-1));
	self.canvas.addEventListener("keydown", (event) => {
		if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
			event.preventDefault();
			show(Math.max(0, over + (event.key === "ArrowRight" ? 1 : -1)));
		}
	});
	return [tag("div", { class: "chart" }, self.canvas), read];
}

function side_quantiles(program) {
	const known = QUANTILES.filter(([key]) => SIDES.some(([side]) => program.durations[side].latency?.[key] !== undefined));

	return tag("div", { class: "scroll" }, tag("table", {}, tag("caption", { class: "hidden" }, "Percentiles of both sides"),
		tag("thead", {}, tag("tr", {}, tag("th", { scope: "col" }, "Side"), tag("th", { scope: "col", class: "number" }, "Recorded"), known.map(([, name]) => tag("th", { scope: "col", class: "number" }, name)))),
		tag("tbody", {}, SIDES.map(([side, title]) => tag("tr", {}, tag("th", { scope: "row" }, title), tag("td", { class: "number" }, count(program.durations[side].recorded || 0)),
			known.map(([key]) => tag("td", { class: "number" }, duration(program.durations[side].latency?.[key]))))))));
}

function latency_part(program) {
	if (!program.durations.bounds)
		return tag("p", { class: "empty" }, "No inference of it was recorded with a duration.");
	return [legend([{ name: "before (dashed)", colour: "before" }, { name: "after", colour: "after" }]), overlay(program), side_quantiles(program),
		tag("p", { class: "note" }, "Over all recorded inferences of a side. With several recordings the rows below are means over them, and may differ from these.")];
}

/* ---- rows ---- */

/* The interval of a change on a scale that all rows have, in parts of before. */
function interval(row, scale) {
	if (row.low === null || row.high === null || !row.before)
		return "";
	const place = (value) => 50 + 50 * Math.max(-1, Math.min(1, value / Math.abs(row.before) / scale)), from = place(row.low), to = place(row.high);

	return tag("span", { class: "interval", "aria-hidden": "true" },
		tag("i", { class: verdict(row), style: { left: `${from.toFixed(1)}%`, width: `${Math.max(1, to - from).toFixed(1)}%` } }), tag("b", { style: { left: `${place(row.change).toFixed(1)}%` } }));
}

function rows_table(rows, data, caption) {
	const { level } = data.comparison, changed = rows.some((each) => each.significant), field = tag("input", { type: "search", placeholder: "row or operator", "aria-label": "Find rows" });
	const tested = rows.filter((each) => each.before && each.low !== null), far = (changed ? tested.filter((each) => each.significant) : tested).map((each) => Math.max(Math.abs(each.low), Math.abs(each.high)) / Math.abs(each.before));
	const scale = Math.min(1, Math.max(0.1, ...far));
	let all = !changed;

	const shown = table([
		{ title: "Row", of: row_name, head: true },
		{ title: "Before", of: (row) => row.before ?? -Infinity, cell: (row) => amount(row.before, row.unit), number: true },
		{ title: "After", of: (row) => row.after ?? -Infinity, cell: (row) => amount(row.after, row.unit), number: true },
		{ title: "Change", of: (row) => row.change ?? -Infinity, cell: (row) => tag("span", { class: verdict(row) }, signed(row.change, row.unit)), number: true },
		{ title: "%", of: (row) => row.percent ?? -Infinity, cell: (row) => tag("span", { class: verdict(row) }, change_percent(row.percent)), number: true },
		{ title: "Interval", cell: (row) => row.low === null ? "\u2013" : `${signed(row.low, row.unit)} to ${signed(row.high, row.unit)}`, number: true, help: `Of the change, ${100 * (1 - level)} % of this row alone` },
		...(tested.length ? [{ title: `\u00b1${(100 * scale).toFixed(0)} %`, cell: (row) => interval(row, scale), help: "The interval, in percent of before; the line in the middle is no change" }] : []),
		{ title: "P", of: (row) => row.adjusted ?? 2, cell: (row) => probability(row.adjusted), number: true, help: "Adjusted for all rows" },
		{ title: "More than noise", of: (row) => row.significant ? 1 : 0, cell: (row) => row.significant ? "yes *" : tag("span", { class: "dim" }, row.adjusted === null ? "not tested" : "no") },
	], [], { caption, limit: 60 });

	function draw() {
		const text = field.value.toLowerCase(), found = rows.filter((each) => (all || each.significant) && row_name(each).toLowerCase().includes(text));

		shown.show(found);
		buttons.forEach((each, i) => each.setAttribute("aria-pressed", all === !!i));
	}

	const buttons = ["Changed", "All rows"].map((name, i) => tag("button", { onclick: () => { all = !!i; draw(); } }, `${name} (${count(rows.filter((each) => i || each.significant).length)})`));
	field.addEventListener("input", draw);
	draw();
	return [tag("div", { class: "bar", role: "group", "aria-label": caption }, buttons, field), shown.element];
}

const SAMPLE_PARTS = 12;

function part_name(part, data) {
	return part.kind === "operator" ? `operator ${part.name}` : part.kind === "outside" ? "outside operators" : (COMPONENTS[part.name] || [part.name])[0];
}

/* What a change consists of: in the words of the text, and as bars. */
function cause_part(cause, words, data) {
	const parts = [...cause.parts.slice(0, SAMPLE_PARTS)], left = sum(cause.parts.slice(SAMPLE_PARTS), (each) => each.change), widest = Math.max(1, ...parts.map((each) => Math.abs(each.change)));

	if (left)
		parts.push({ title: `${counted(cause.parts.length - SAMPLE_PARTS, "smaller part")}`, before: null, after: null, change: left });
	if (cause.not_attributed)
		parts.push({ title: "not attributed", before: null, after: null, change: cause.not_attributed });
	return tag("div", { class: "block" }, tag("p", {}, words), parts.length ? table([
		{ title: `Change of ${cause.row}`, of: (row) => row.title || part_name(row, data), head: true },
		{ title: "Before", of: (row) => row.before ?? -1, cell: (row) => duration(row.before), number: true },
		{ title: "After", of: (row) => row.after ?? -1, cell: (row) => duration(row.after), number: true },
		{ title: "Change", of: (row) => row.change, cell: (row) => signed(row.change, "ns"), number: true },
		{ title: "", cell: (row) => tag("span", { class: "interval", "aria-hidden": "true" }, tag("i", { class: row.change > 0 ? "bad" : "good", style: { left: `${(row.change < 0 ? 50 + 50 * Math.max(-1, row.change / widest) : 50).toFixed(1)}%`, width: `${(50 * Math.min(1, Math.abs(row.change) / widest)).toFixed(1)}%` } })) },
	], parts, { caption: `What the change of ${cause.row} consists of` }).element : null);
}

function rows_part(program, data) {
	const causes = program.causes.map((cause, i) => [cause, program.durations.words[i]]).filter(([cause]) => cause.change);

	if (!program.rows.length)
		return tag("p", { class: "empty" }, "Too few inferences of it were recorded to compare them.");
	return [rows_table(program.rows, data, `Rows of ${program.name}`), causes.length ? [tag("h3", { style: { marginTop: "14px" } }, "What the changes consist of"),
		tag("div", { class: "columns" }, causes.map(([cause, words]) => cause_part(cause, words, data)))] : null];
}

/* ---- the rest ---- */

function comparison_counters(data) {
	const rows = data.comparison.counters;

	return section("counters", "Counters", "Of the machine, in no program.", rows.length ? rows_table(rows, data, "Counters") : tag("p", { class: "empty" }, "No counter was read on both sides."));
}

function unmatched_section(data) {
	const rows = data.comparison.unmatched, all = data.kept.all_unmatched;

	return section("unmatched", "On one side only", all > rows.length ? `The first ${count(rows.length)} of ${count(all)}.` : null, rows.length ? table([
		{ title: "Program", of: (row) => row.name, head: true }, { title: "Side", of: (row) => row.side }, { title: "Runtime", of: (row) => row.runtime }, { title: "Process", of: (row) => row.process },
		{ title: "Inferences", of: (row) => row.inferences, cell: (row) => count(row.inferences), number: true },
		{ title: "", cell: (row) => row.ambiguous ? "ambiguous: several on the other side could be it" : "", class: "words" },
	], rows, { caption: "Programs on one side only", limit: 50 }).element : tag("p", { class: "empty" }, "All programs are on both sides."));
}

function build_comparison(data) {
	const { comparison, sides } = data, about = chosen_parts(["latency", "Latency"], ["rows", "What has changed"]);
	const choose = (program) => about.show(() => [tag("b", {}, program.name), program_words(program)], { latency: () => latency_part(program), rows: () => rows_part(program, data) });

	if (comparison.programs.length)
		choose(comparison.programs[0]);
	else
		about.show(() => "", "No program is on both sides.");
	show_page(`${side_name(sides[0])} \u2192 ${side_name(sides[1])}`, data.page_version, COMPARISON_PARTS, comparison_overview(data), comparison_programs(data, choose), about.elements,
		comparison_counters(data), unmatched_section(data),
		section("recordings", "Recordings", null, tag("div", { class: "columns" }, SIDES.map(([, title], i) => side_part(sides[i], title, data)))));
}
