/* SPDX-License-Identifier: BSD-2-Clause */
/* What was recorded, what it cost, what is missing; and how much of it the page has. */

function figure(title, value, more) {
	return tag("div", {}, tag("dt", {}, title), tag("dd", {}, value, more ? tag("small", {}, " ", more) : null));
}

function pairs(rows) {
	return tag("dl", { class: "pairs" }, rows.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== "")
		.map(([name, value]) => [tag("dt", {}, name), tag("dd", {}, value)]));
}

function sum(list, of) {
	return list.reduce((all, each) => all + (of(each) || 0), 0);
}

function loss_list(data) {
	const lost = Object.entries(data.summary.lost);

	if (!lost.length)
		return tag("p", { class: "note" }, "Nothing was lost.");
	return tag("div", { class: "block" }, tag("p", { class: "note bad" }, "Some of what happened is not in the recording. Totals that the kernel counted stay exact."),
		table([{ title: "Cause", of: (row) => data.losses[row[0]] || row[0], head: true, class: "words" },
			{ title: "Lost", of: (row) => row[1], cell: (row) => count(row[1]), number: true }], lost, { caption: "Losses by cause" }).element);
}

function budget_list(data) {
	const changes = (data.summary.budget_changes || []).map((each) => ({ at: each.time_us * 1000 - data.origin, what: {
		sampling: () => `sampling: 1 in ${count(each.every)}, ${counted(each.programs, "program")}`,
		operators: () => `operators ${each.on ? "on" : "off"}`,
		site: () => `${each.function} ${each.on ? "on" : "off"}`,
	}[each.action](), cost: each.cost, budget: each.budget }));

	if (!changes.length)
		return null;
	return tag("details", {}, tag("summary", {}, `${counted(changes.length, "change")} to keep the budget`),
		table([{ title: "At", of: (row) => row.at, cell: (row) => moment(row.at), number: true },
			{ title: "Change", of: (row) => row.what, head: true },
			{ title: "Cost before", of: (row) => row.cost, cell: (row) => `${rate(row.cost)} % of ${rate(row.budget)} %`, number: true }], changes, { caption: "Changes to keep the budget", limit: 20 }).element);
}

function cost_list(data) {
	const { summary } = data, tracing = summary.programs.filter((each) => each.tracing_ns && each.latency_ns);
	const worst = tracing.sort((a, b) => b.tracing_ns.p50 / b.latency_ns.p50 - a.tracing_ns.p50 / a.latency_ns.p50)[0];

	return [pairs([
		["Collector", `${duration(summary.collector_cpu_ns)} of CPU time (${percent(summary.collector_cpu_ns / summary.duration_ns)} of one CPU), ${bytes(summary.collector_memory_bytes)} of memory`],
		worst ? ["In inferences", `median ${duration(worst.tracing_ns.p50)} of ${duration(worst.latency_ns.p50)} (${percent(worst.tracing_ns.p50 / worst.latency_ns.p50)}) in ${worst.name}, the most affected program`] : null,
		data.costs.calls ? ["Probes", `${counted(data.costs.calls, "call")} through them, ${duration(data.costs.cost)} in all`] : null,
		data.costs.attach ? ["Placing probes", `${duration(data.costs.attach)}, removing them ${duration(data.costs.detach)}`] : null,
		data.costs.waits ? ["Threads waited", `${times(data.costs.waits)} for their probes, ${duration(data.costs.wait_time)} in all`] : null,
	]), budget_list(data)];
}

/* How much of the recording is shown one by one. */
function kept_list(data) {
	const { kept } = data, list = ["Counts, percentiles, histograms, heat maps and sums of operators are of all recorded inferences."];

	list.push(kept.samples < kept.all_samples ? `The timeline shows ${count(kept.samples)} of ${count(kept.all_samples)} recorded inferences: ${kept.slow_samples < kept.all_slow_samples ? `${count(kept.slow_samples)} of the ${count(kept.all_slow_samples)}` : `all ${count(kept.slow_samples)}`} that are the slowest 1 % of their program, the others drawn by chance.` :
		`The timeline shows all ${count(kept.samples)} recorded inferences.`);
	list.push(`In full there are ${counted(kept.details, "inference")}: of each program the slowest and the nearest to the median.`);
	if (kept.left_out_details)
		list.push(`${count(kept.left_out_details)} more had no room.`);
	if (kept.cut_details)
		list.push(`${count(kept.cut_details)} of them had more in them than is kept.`);
	if (kept.spans < kept.all_spans)
		list.push(`Of ${count(kept.all_spans)} operators, waits, calls, regions and jobs the timeline shows ${count(kept.spans)}: all of ${duration(data.windows.width)} in each ${duration(data.windows.width * data.windows.every)}.`);
	if (kept.driver_errors < kept.all_driver_errors)
		list.push(`On the axis of devices are the first ${count(kept.driver_errors)} of ${count(kept.all_driver_errors)} errors of drivers.`);
	if (kept.memory_events < kept.all_memory_events)
		list.push(`On the axis of devices are the first ${count(kept.memory_events)} of ${count(kept.all_memory_events)} memory events of drivers.`);
	if (kept.programs < kept.all_programs)
		list.push(`The ${count(kept.programs)} programs with most time are shown, of ${count(kept.all_programs)}.`);
	if (kept.operators < kept.all_operators)
		list.push(`${count(kept.operators)} operators are shown, of ${count(kept.all_operators)}.`);
	for (const each of data.flames.filter((graph) => graph.shown > 1 && graph.shown < graph.all))
		list.push(`The flame graph of the ${each.title} shows the ${count(each.shown)} largest of ${count(each.all)} frames; what is above them is added to these.`);
	return list;
}

function overview(data) {
	const { source, summary } = data, seconds = summary.duration_ns / 1e9;
	const inferences = sum(summary.programs, (each) => each.inferences), failed = sum(summary.programs, (each) => each.failed);
	const lost = sum(Object.values(summary.lost), (each) => each);
	const when = source.began_ms ? new Date(source.began_ms) : null;

	return section("overview", "Recording", null,
		tag("dl", { class: "figures", style: { margin: "0 0 14px" } },
			figure("Recorded", duration(summary.duration_ns)),
			figure("Programs", count(summary.programs.length)),
			figure("Inferences", count(inferences), seconds ? `${rate(inferences / seconds)} a second` : ""),
			figure("Failed", tag("span", { class: failed ? "bad" : null }, count(failed))),
			figure("Lost", tag("span", { class: lost ? "bad" : "good" }, count(lost)), lost ? "records or events" : ""),
			data.kept.all_driver_errors ? figure("Errors of drivers", tag("span", { class: "bad" }, count(data.kept.all_driver_errors))) : null,
			figure("Collector", percent(summary.collector_cpu_ns / summary.duration_ns), "of a CPU")),
		summary.complete ? null : tag("p", { class: "note bad" }, "The recording was cut short: this is what was complete. Totals of the kernel and costs are missing."),
		tag("div", { class: "columns" },
			tag("div", { class: "block" }, tag("h3", {}, "What was recorded"), pairs([
				["File", source.file],
				["Command", tag("code", {}, source.command)],
				["Machine", `${source.host}, Linux ${source.kernel}, ${source.machine}`],
				["Began", when ? `${when.toISOString().replace("T", " ").slice(0, 19)} UTC` : null],
				["Recorded by", `xputrace ${source.version}`],
			]), tag("h3", { style: { marginTop: "10px" } }, "What it cost"), cost_list(data)),
			tag("div", { class: "block" }, tag("h3", {}, "What is missing"), loss_list(data),
				tag("h3", { style: { marginTop: "10px" } }, "What this page has of it"),
				kept_list(data).map((text) => tag("p", { class: "note" }, text)))));
}

/* A part of the page. */
function section(id, title, explanation, ...content) {
	return tag("section", { id, "aria-labelledby": `${id}-title` },
		tag("div", { class: "head" }, tag("h2", { id: `${id}-title` }, title), explanation ? tag("span", { class: "dim" }, explanation) : null), content);
}
