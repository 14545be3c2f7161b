/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the page together. */

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

function mark_current(links) {
	const seen = new Set(), observer = new IntersectionObserver((entries) => {
		for (const each of entries)
			seen[each.isIntersecting ? "add" : "delete"](each.target.id);
		const current = PARTS.find(([id]) => seen.has(id));

		for (const [id, link] of links)
			link.toggleAttribute("aria-current", !!current && id === current[0]);
	}, { rootMargin: "-40px 0px -60% 0px" });

	for (const [id] of links)
		observer.observe(document.getElementById(id));
}

function build(data) {
	const range = new Range(data.begin, data.end), timeline = timeline_section(data, range);
	const title = tag("span"), parts = { program: tag("div"), slow: tag("div"), operators: tag("div") };
	const named = (id, title, text) => {
		const name = tag("span", { class: "dim" });

		parts[id].name = name;
		return tag("section", { id, "aria-labelledby": `${id}-title` }, tag("div", { class: "head" }, tag("h2", { id: `${id}-title` }, title), name, text ? tag("span", { class: "dim" }, text) : null), parts[id]);
	};
	const go = (from, to) => {
		range.set(from, to);
		document.getElementById("timeline").scrollIntoView();
		timeline.view.picture.canvas.focus({ preventScroll: true });
	};
	const choose = (program) => {
		for (const each of Object.values(parts))
			replace(each.name, tag("b", {}, program.name), ` of ${program.runtime} in ${program.process}`);
		for (const each of pictures) {
			if (Object.values(parts).some((part) => part.contains(each.canvas)))
				pictures.delete(each);
		}
		replace(parts.program, program_part(program, data, go));
		replace(parts.slow, compare_part(program, data, go));
		replace(parts.operators, operators_part(program));
	};
	const links = PARTS.map(([id, name]) => [id, tag("a", { href: `#${id}` }, name)]);
	const main = tag("main", { id: "main" }, overview(data), programs_section(data, choose), named("program", "Latency"), named("slow", "Slowest inferences"),
		named("operators", "Operators"), flame_section(data), timeline.element, devices_section(data, range), code_section(data), calls_section(data),
		tag("footer", {}, `Made by xputrace ${data.source.page_version}. This file needs no network and no server; it sends nothing anywhere.`));

	document.title = plain(`${data.source.file} \u2013 xputrace`);
	replace(document.body, tag("a", { class: "skip", href: "#main" }, "Skip to the report"),
		tag("header", { class: "top" }, tag("h1", {}, "xputrace ", tag("span", { class: "dim" }, data.source.file)), tag("nav", { "aria-label": "Parts of the page" }, links.map((each) => each[1])), theme_button()), main);
	if (data.programs.length) {
		choose(data.programs[0]);
	} else {
		for (const each of Object.values(parts))
			replace(each, tag("p", { class: "empty" }, "No program was recorded."));
	}
	print_light();
	mark_current(links);
	document.documentElement.dataset.ready = "true";
}

read_data().then(build).catch((error) => {
	console.error(error);
	replace(document.body, tag("main", {}, tag("h1", {}, "This page cannot be shown"), tag("p", {}, `${error}`), tag("p", {}, "It needs a browser of 2024 or later: Chromium 123, Firefox 120, Safari 17.5.")));
});
