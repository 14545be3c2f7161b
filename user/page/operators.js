/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators of the program, by node and by type. */

function by_type(program) {
	const types = new Map();

	for (const each of program.operators) {
		const key = `${each.type || each.label}\u0000${each.provider || ""}`;
		const type = types.get(key) || { label: each.type || each.label, type: "", provider: each.provider, nodes: 0, count: 0, self: 0, total: 0, device: 0, typical_self: 0, slow_self: 0 };

		type.nodes++;
		for (const name of ["count", "self", "total", "device", "typical_self", "slow_self"])
			type[name] += each[name];
		types.set(key, type);
	}
	return [...types.values()];
}

function operators_part(program) {
	if (!program.operators.length)
		return tag("p", { class: "empty" }, "No operators of it were recorded: record --ops does.");
	const whole = sum(program.operators, (each) => each.self), device = program.operators.some((each) => each.device);
	const types = by_type(program), holder = tag("div"), field = tag("input", { type: "search", placeholder: "name or type", "aria-label": "Find operators" });
	let view = "type", shown;

	const columns = () => [
		{ title: view === "type" ? "Type" : "Operator", of: (row) => row.label, head: true },
		view === "type" ? { title: "Nodes", of: (row) => row.nodes, cell: (row) => count(row.nodes), number: true } : { title: "Type", of: (row) => row.type || "" },
		{ title: "Provider", of: (row) => row.provider || "" },
		{ title: "Executions", of: (row) => row.count, cell: (row) => count(row.count), number: true },
		{ title: "Self", of: (row) => row.self, cell: (row) => duration(row.self), number: true, help: "Without operators inside" },
		{ title: "of all", of: (row) => row.self / whole, cell: (row) => [part(row.self / whole), ` ${percent(row.self / whole)}`], number: true },
		{ title: "Total", of: (row) => row.total, cell: (row) => duration(row.total), number: true, help: "With operators inside" },
		{ title: "Mean", of: (row) => row.total / row.count, cell: (row) => duration(row.total / row.count), number: true },
		...(view === "node" ? [{ title: "p99", of: (row) => row.p99, cell: (row) => duration(row.p99), number: true }] : []),
		...(device ? [{ title: "Device", of: (row) => row.device, cell: (row) => row.device ? duration(row.device) : "\u2013", number: true }] : []),
		{ title: "Typical inference", of: (row) => row.typical_self, cell: (row) => duration(row.typical_self), number: true, help: "Self time in one inference between p40 and p60" },
		{ title: "Slowest 1 %", of: (row) => row.slow_self, cell: (row) => duration(row.slow_self), number: true, help: "Self time in one of the slowest inferences" },
		{ title: "Difference", of: (row) => row.slow_self - row.typical_self, cell: (row) => tag("span", { class: row.slow_self > row.typical_self * 1.2 && row.slow_self - row.typical_self > 1000 ? "bad" : null }, duration(row.slow_self - row.typical_self)), number: true },
	];

	function found() {
		const text = field.value.toLowerCase();

		return (view === "type" ? types : program.operators).filter((each) => !text || each.label.toLowerCase().includes(text) || (each.type || "").toLowerCase().includes(text));
	}

	function draw() {
		shown = table(columns(), found(), { caption: `Operators by ${view}`, sort: 4, limit: 25 });
		replace(holder, shown.element);
		for (const each of buttons)
			each.setAttribute("aria-pressed", each.dataset.view === view);
	}

	const buttons = ["type", "node"].map((each) => tag("button", { "data-view": each, onclick: () => { view = each; draw(); } }, each === "type" ? "By type" : "By node"));
	field.addEventListener("input", () => shown.show(found()));
	draw();
	return [tag("div", { class: "bar", role: "group", "aria-label": "Operators" }, buttons, field), holder];
}
