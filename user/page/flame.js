/* SPDX-License-Identifier: BSD-2-Clause */
/* Flame graphs of stacks: a canvas that zooms into a frame and marks what a search finds, and the same as a table. */

const FLAME_ROW = 17;

/* Sums, depths and children of the nodes, which come after their parents. */
function flame_tree(graph) {
	const size = graph.parent.length, total = Float64Array.from(graph.self), depth = new Uint16Array(size), children = Array.from({ length: size }, () => []);

	for (let i = size - 1; i > 0; i--)
		total[graph.parent[i]] += total[i];
	for (let i = 1; i < size; i++) {
		depth[i] = depth[graph.parent[i]] + 1;
		children[graph.parent[i]].push(i);
	}
	for (const each of children)
		each.sort((a, b) => graph.names[graph.label[a]] < graph.names[graph.label[b]] ? -1 : 1);
	return { total, depth, children };
}

/* Of each name, the time at the end of stacks and anywhere in them. */
function flame_rows(graph, tree) {
	const rows = graph.names.map((name, i) => ({ name, kind: graph.kinds[i], self: 0, total: 0 }));
	const open = new Map();

	/* Not recursive: stacks may be deep. Below a frame of the same name its time is there already. */
	const work = tree.children[0].map((i) => [i, true]);
	while (work.length) {
		const [i, begins] = work.pop(), label = graph.label[i];

		if (!begins) {
			open.set(label, open.get(label) - 1);
			continue;
		}
		rows[label].self += graph.self[i];
		if (!open.get(label))
			rows[label].total += tree.total[i];
		open.set(label, (open.get(label) || 0) + 1);
		work.push([i, false], ...tree.children[i].map((child) => [child, true]));
	}
	return rows;
}

function flame_view(graph) {
	const tree = flame_tree(graph), whole = tree.total[0], read = tag("div", { class: "read", "aria-live": "polite" }), deepest = tree.depth.reduce((most, each) => Math.max(most, each), 0);
	const field = tag("input", { type: "search", placeholder: "regular expression", "aria-label": "Search frames" }), found = tag("span", { class: "dim", "aria-live": "polite" });
	const reset = tag("button", { onclick: () => zoom(0) }, "Show all");
	let root = 0, over = -1, boxes = [], matches = null;

	const name = (i) => i ? graph.names[graph.label[i]] : "all";
	const describe = (i) => `${duration(tree.total[i])}, ${percent(tree.total[i] / whole)}; self ${duration(graph.self[i])}; ${count(graph.count[i])} ${graph.words} end here`;

	function place(width) {
		const path = [];

		boxes = [];
		for (let i = root; i > 0; i = graph.parent[i])
			path.push(graph.parent[i]);
		path.reverse().forEach((i) => boxes.push({ i, x: 0, width, y: tree.depth[i] * FLAME_ROW, above: true }));
		const work = [[root, 0]];
		while (work.length) {
			const [i, x] = work.pop(), wide = tree.total[i] / (tree.total[root] || 1) * width;

			if (wide < 0.4)
				continue;
			boxes.push({ i, x, width: wide, y: tree.depth[i] * FLAME_ROW });
			let at = x;
			for (const child of tree.children[i]) {
				work.push([child, at]);
				at += tree.total[child] / (tree.total[root] || 1) * width;
			}
		}
	}

	function fill(box) {
		if (matches && matches.has(graph.label[box.i]) && box.i)
			return colour("accent");
		if (!box.i)
			return colour("sunken");
		return { kernel: `hsl(28 ${is_dark() ? "35% 36%" : "70% 78%"})`, program: `hsl(212 ${is_dark() ? "38% 40%" : "55% 78%"})`, operator: `hsl(150 ${is_dark() ? "28% 34%" : "40% 76%"})` }[graph.kinds[graph.label[box.i]]]
			|| `hsl(${10 + graph.label[box.i] * 7 % 38} ${is_dark() ? "30%" : "60%"} ${(is_dark() ? 34 : 80) + graph.label[box.i] % 4 * 2}%)`;
	}

	function paint(context, width) {
		place(width);
		for (const box of boxes) {
			context.globalAlpha = box.above ? 0.55 : 1;
			context.fillStyle = fill(box);
			context.fillRect(box.x, box.y, Math.max(0.6, box.width - 0.7), FLAME_ROW - 1);
			context.globalAlpha = 1;
			if (box.width > 22) {
				context.fillStyle = matches && box.i && matches.has(graph.label[box.i]) ? colour("page") : colour("text");
				fit(context, name(box.i), box.x + 3, box.y + FLAME_ROW / 2, box.width - 6);
			}
			if (box.i === over) {
				context.strokeStyle = colour("text");
				context.strokeRect(box.x + 0.5, box.y + 0.5, Math.max(1, box.width - 1), FLAME_ROW - 2);
			}
		}
	}

	function point_at(i) {
		over = i;
		replace(read, i >= 0 ? [tag("b", {}, name(i)), ` ${describe(i)}`] : "");
		self.draw();
	}

	function zoom(i) {
		root = i;
		reset.disabled = !root;
		point_at(i);
	}

	function search() {
		let expression = null;

		try {
			expression = field.value ? new RegExp(field.value, "i") : null;
			field.removeAttribute("aria-invalid");
		} catch {
			field.setAttribute("aria-invalid", "true");
		}
		matches = expression && new Set(graph.names.map((each, i) => expression.test(each) ? i : -1).filter((i) => i >= 0));
		if (matches) {
			let time = 0;
			const work = [0];

			while (work.length) {
				const i = work.pop();

				if (i && matches.has(graph.label[i]))
					time += tree.total[i];
				else
					work.push(...tree.children[i]);
			}
			found.textContent = `${counted(matches.size, "frame")} match, ${percent(time / whole)} of the time`;
		} else {
			found.textContent = "";
		}
		self.draw();
	}

	function key(event) {
		const siblings = over > 0 ? tree.children[graph.parent[over]] : [0], i = siblings.indexOf(over), biggest = over >= 0 ? [...tree.children[over]].sort((a, b) => tree.total[b] - tree.total[a])[0] : root;
		const next = { ArrowDown: biggest, ArrowUp: over > 0 ? graph.parent[over] : 0, ArrowRight: siblings[i + 1], ArrowLeft: siblings[i - 1] }[event.key];

		if (event.key === "Enter" && over >= 0)
			zoom(over);
		else if (event.key === "Escape")
			zoom(0);
		else if (event.key.startsWith("Arrow"))
			point_at(next ?? over);
		else
			return;
		event.preventDefault();
	}

	const self = picture((deepest + 1) * FLAME_ROW, `Flame graph: ${graph.title}. Arrow keys go from frame to frame, Enter zooms into one, Escape shows all. A table of the frames follows.`, paint, { role: "application", tabindex: 0, "aria-roledescription": "flame graph" });
	const box_at = (event) => {
		const { x, y } = position(self.canvas, event);

		return boxes.find((each) => x >= each.x && x < each.x + Math.max(1, each.width) && y >= each.y && y < each.y + FLAME_ROW);
	};
	self.canvas.addEventListener("pointermove", (event) => point_at(box_at(event)?.i ?? -1));
	self.canvas.addEventListener("pointerleave", () => point_at(-1));
	self.canvas.addEventListener("click", (event) => box_at(event) && zoom(box_at(event).i));
	self.canvas.addEventListener("keydown", key);
	field.addEventListener("input", search);
	reset.disabled = true;
	return [tag("div", { class: "bar" }, field, reset, found), tag("div", { class: "chart deep" }, self.canvas), read,
		tag("details", {}, tag("summary", {}, "As a table"), table([
			{ title: "Frame", of: (row) => row.name, head: true }, { title: "Kind", of: (row) => row.kind },
			{ title: "Self", of: (row) => row.self, cell: (row) => `${duration(row.self)} (${percent(row.self / whole)})`, number: true },
			{ title: "Total", of: (row) => row.total, cell: (row) => `${duration(row.total)} (${percent(row.total / whole)})`, number: true },
		], flame_rows(graph, tree), { caption: graph.title, sort: 2, limit: 20 }).element)];
}

function flame_section(data) {
	const graphs = data.flames.filter((each) => each.parent.length > 1);

	if (!graphs.length)
		return section("flame", "Flame graphs", null, tag("p", { class: "empty" }, "No stacks were recorded: record --stacks and --samples do."));
	const holder = tag("div", { id: "flame-graph", role: "tabpanel" });
	const tabs = graphs.map((graph, i) => tag("button", { role: "tab", "aria-controls": "flame-graph", onclick: () => show(i),
		onkeydown: (event) => {
			const next = { ArrowRight: i + 1, ArrowLeft: i - 1 }[event.key];

			if (tabs[next]) {
				show(next);
				tabs[next].focus();
			}
		} }, graph.title));

	function show(index) {
		tabs.forEach((each, i) => {
			each.setAttribute("aria-selected", i === index);
			each.tabIndex = i === index ? 0 : -1;
		});
		replace(holder, flame_view(graphs[index]));
	}

	show(0);
	return section("flame", "Flame graphs", "Who called: callers above, programs and operators at the bottom. A click zooms.", tag("div", { class: "bar", role: "tablist", "aria-label": "What a flame graph is of" }, tabs), holder);
}
