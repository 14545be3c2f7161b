/* SPDX-License-Identifier: BSD-2-Clause */
/* Elements, text and figures. Names are hostile: they become text nodes and attributes only, never markup. */

/* Controls, changes of direction and invisible characters, as they may stand in names, become visible. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function plain(text) {
	return String(text).replace(HIDDEN, (c) => {
		const code = c.codePointAt(0);
		return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
	});
}

/* An element. attributes: "class", "aria-..."; on...: listeners. children: elements, text, null, or arrays of these. */
function tag(kind, attributes, ...children) {
	const element = document.createElement(kind);

	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (name === "style")
			Object.assign(element.style, value);
		else if (value !== null && value !== undefined && value !== false)
			element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : plain(value));
	}
	append(element, children);
	return element;
}

function append(element, children) {
	for (const child of children.flat(Infinity)) {
		if (child !== null && child !== undefined && child !== false)
			element.append(child instanceof Node ? child : document.createTextNode(plain(child)));
	}
}

function replace(element, ...children) {
	element.textContent = "";
	append(element, children);
}

/* ---- figures ---- */

const GROUPS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function digits(value) {
	return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/* ns, for people: "13.1 ms". */
function duration(ns) {
	const size = Math.abs(ns);

	if (ns === null || ns === undefined || Number.isNaN(ns))
		return "\u2013";
	const sign = ns <= -0.5 ? "\u2212" : "";
	if (size < 1e3)
		return `${sign}${size.toFixed(0)} ns`;
	if (size < 1e6)
		return `${sign}${digits(size / 1e3)} \u00b5s`;
	if (size < 1e9)
		return `${sign}${digits(size / 1e6)} ms`;
	return size < 120e9 ? `${sign}${digits(size / 1e9)} s` : `${sign}${Math.floor(size / 60e9)} min ${((size % 60e9) / 1e9).toFixed(0)} s`;
}

function count(value) {
	return GROUPS.format(value);
}

function counted(value, name) {
	return `${count(value)} ${name}${value === 1 ? "" : "s"}`;
}

/* With a letter for thousands, millions...: "518k". */
function compact(value) {
	const letters = ["", "k", "M", "G", "T", "P"];
	let letter = 0;

	for (; Math.abs(value) >= 1000 && letter < letters.length - 1; letter++)
		value /= 1000;
	return `${+value.toPrecision(3)}${letters[letter]}`;
}

function bytes(value) {
	const units = ["bytes", "kB", "MB", "GB", "TB"];
	let unit = 0;

	for (; value >= 1000 && unit < units.length - 1; unit++)
		value /= 1000;
	return `${unit ? digits(value) : value} ${units[unit]}`;
}

function percent(part) {
	return !Number.isFinite(part) ? "\u2013" : `${(100 * part).toFixed(part && Math.abs(part) < 0.1 ? 2 : 1)} %`;
}

function rate(value) {
	return value >= 100 ? count(value) : value >= 1 ? value.toFixed(1) : value.toPrecision(2);
}

/* The last part of a path. */
function short(name) {
	return name.slice(name.lastIndexOf("/", name.length - 2) + 1);
}

/* ---- tables ---- */

/*
 * columns: {title, number, of(row) the sorting value, cell(row), head: it names the row}. options: caption; chosen(row): called when
 * one is chosen; limit: rows shown at first; sort: index, ascending.
 */
function table(columns, rows, options = {}) {
	let sorted = options.sort ?? -1, descending = !options.ascending, all = false, selected = options.selected ?? null, chosen_now = rows;
	const body = tag("tbody"), head = tag("tr"), more = tag("button", { class: "tool", onclick: () => { all = true; draw(); } });
	const element = tag("div", { class: "block" },
		tag("div", { class: options.tall ? "scroll tall" : "scroll", tabindex: options.tall ? 0 : null, role: options.tall ? "region" : null, "aria-label": options.tall ? options.caption : null },
			tag("table", {}, tag("caption", { class: "hidden" }, options.caption || ""), tag("thead", {}, head), body)),
		more);

	function choose(row) {
		selected = row;
		for (const each of body.children)
			mark(each);
		options.chosen(row);
	}

	function mark(element) {
		element.classList.toggle("chosen", element.row === selected);
		element.querySelector("th button").setAttribute("aria-pressed", element.row === selected);
	}

	function line(row) {
		const cells = columns.map((column) => {
			const content = column.cell ? column.cell(row) : column.of(row);
			const inner = column.head && options.chosen ?
				tag("button", { onclick: (event) => { event.stopPropagation(); choose(row); } }, content) : content;
			return tag(column.head ? "th" : "td", { scope: column.head ? "row" : null, class: [column.number && "number", column.class].filter(Boolean).join(" ") || null,
				title: column.head && typeof content === "string" ? content : null }, inner);
		});
		const element = tag("tr", options.chosen ? { class: "choice", onclick: () => choose(row) } : {}, cells);

		element.row = row;
		if (options.chosen)
			mark(element);
		return element;
	}

	function draw() {
		const column = columns[sorted];
		const order = column ? [...chosen_now].sort((a, b) => {
			const x = column.of(a), y = column.of(b);
			return (typeof x === "string" ? x.localeCompare(y) : x - y) * (descending ? -1 : 1);
		}) : chosen_now;
		const limit = all ? order.length : options.limit ?? order.length;

		replace(head, columns.map((each, i) => tag("th", { scope: "col", class: each.number ? "number" : null, title: each.help,
			"aria-sort": i === sorted ? (descending ? "descending" : "ascending") : null },
			each.of ? tag("button", { onclick: () => { descending = i === sorted ? !descending : !!each.number; sorted = i; draw(); } }, each.title) : each.title)));
		replace(body, order.slice(0, limit).map(line));
		more.hidden = limit >= order.length;
		more.textContent = `Show all ${count(order.length)}`;
	}

	draw();
	return { element, choose, show(rows) { chosen_now = rows; draw(); } };
}

function part(share) {
	return tag("span", { class: "part", role: "presentation" }, tag("i", { style: { width: `${Math.min(100, Math.max(0, 100 * share)).toFixed(1)}%` } }));
}
