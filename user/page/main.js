/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the page together: of a recording, or of a comparison. */

/* What the page has, of a recording: ids and names. */
const PARTS = [["overview", "Recording"], ["programs", "Programs"], ["program", "Latency"], ["slow", "Slowest"], ["operators", "Operators"], ["flame", "Flame graphs"], ["timeline", "Timeline"], ["devices", "Devices"], ["code", "Code objects"], ["calls", "Calls"]];

function theme_button() {
	const button = tag("button", { class: "tool", onclick: () => {
		document.documentElement.dataset.theme = is_dark() ? "light" : "dark";
		label();
		redraw_all();
	} });
	const label = () => replace(button, is_dark() ? "Light" : "Dark");

	label();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { label(); redraw_all(); });
	return button;
}

/* What is printed is light, and canvases are not styled by @media print. */
function print_light() {
	let theme;

	addEventListener("beforeprint", () => {
		theme = document.documentElement.dataset.theme;
		document.documentElement.dataset.theme = "light";
		colours = new Map();
		for (const each of pictures)
			each.now();
	});
	addEventListener("afterprint", () => {
		if (theme)
			document.documentElement.dataset.theme = theme;
		else
			delete document.documentElement.dataset.theme;
		redraw_all();
	});
}

function mark_current(parts, links) {
	const seen = new Set(), observer = new IntersectionObserver((entries) => {
		for (const each of entries)
			seen[each.isIntersecting ? "add" : "delete"](each.target.id);
		const current = parts.findIndex(([id]) => seen.has(id));

		links.forEach((link, i) => link.toggleAttribute("aria-current", i === current));
	}, { rootMargin: "-40px 0px -60% 0px" });

	for (const [id] of parts)
		observer.observe(document.getElementById(id));
}

/* Shows a page about name, with these parts. */
function show_page(name, version, parts, ...content) {
	const links = parts.map(([id, title]) => tag("a", { href: `#${id}` }, title));

	document.title = plain(`${name} \u2013 xputrace`);
	replace(document.body, tag("a", { class: "skip", href: "#main" }, "Skip to the report"),
		tag("header", { class: "top" }, tag("h1", {}, "xputrace ", tag("span", { class: "dim" }, name)), tag("nav", { "aria-label": "Parts of the page" }, links), theme_button()),
		tag("main", { id: "main" }, content, tag("footer", {}, `Made by xputrace ${version}. This file needs no network and no server; it sends nothing anywhere.`)));
	print_light();
	mark_current(parts, links);
	document.documentElement.dataset.ready = "true";
}

/* Parts about the program that is chosen. parts: [id, title] each. show(words, content): both are functions, content one by id, or text for all. */
function chosen_parts(...parts) {
	const made = parts.map(([id, title]) => {
		const name = tag("span", { class: "dim" }), body = tag("div");

		return { id, name, body, element: tag("section", { id, "aria-labelledby": `${id}-title` }, tag("div", { class: "head" }, tag("h2", { id: `${id}-title` }, title), name), body) };
	});

	return { elements: made.map((each) => each.element), show(words, content) {
		for (const each of pictures) {
			if (made.some((part) => part.body.contains(each.canvas)))
				pictures.delete(each);
		}
		for (const { id, name, body } of made) {
			replace(name, words());
			replace(body, typeof content === "string" ? tag("p", { class: "empty" }, content) : content[id]());
		}
	} };
}

function build_report(data) {
	const range = new Range(data.begin, data.end), timeline = timeline_section(data, range);
	const about = chosen_parts(["program", "Latency"], ["slow", "Slowest inferences"], ["operators", "Operators"]);
	const go = (from, to) => {
		range.set(from, to);
		document.getElementById("timeline").scrollIntoView();
		timeline.view.picture.canvas.focus({ preventScroll: true });
	};
	const choose = (program) => about.show(() => [tag("b", {}, program.name), ` of ${program.runtime} in ${program.process}`],
		{ program: () => program_part(program, data, go), slow: () => compare_part(program, data, go), operators: () => operators_part(program) });

	if (data.programs.length)
		choose(data.programs[0]);
	else
		about.show(() => "", "No program was recorded.");
	show_page(data.source.file, data.page_version, PARTS, overview(data), programs_section(data, choose), about.elements, flame_section(data), timeline.element,
		devices_section(data, range), code_section(data), calls_section(data));
}

read_data().then((data) => data.comparison ? build_comparison(data) : build_report(data)).catch((error) => {
	console.error(error);
	replace(document.body, tag("main", {}, tag("h1", {}, "This page cannot be shown"), tag("p", {}, `${error}`), tag("p", {}, "It needs a browser of 2024 or later: Chromium 123, Firefox 120, Safari 17.5.")));
});
