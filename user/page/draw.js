/* SPDX-License-Identifier: BSD-2-Clause */
/* Canvases that follow the size and the theme of the page, axes, colours. */

const pictures = new Set();
let colours = new Map();

/* The value of a variable of page.css in the theme that is shown. */
function colour(name) {
	if (!colours.has(name)) {
		const probe = tag("span", { style: { color: `var(--${name})`, position: "absolute" } });

		document.body.append(probe);
		colours.set(name, getComputedStyle(probe).color);
		probe.remove();
	}
	return colours.get(name);
}

const HUES = [212, 28, 150, 268, 345, 190, 48, 100, 310, 8, 236, 170];

/* The same text has the same colour everywhere. */
function named_colour(text) {
	const known = colours.get(`= ${text}`);
	let hash = 7;

	if (known)
		return known;

	for (let i = 0; i < text.length; i++)
		hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
	const dark = is_dark(), made = `hsl(${HUES[hash % HUES.length]} ${dark ? 34 : 52}% ${(dark ? 38 : 74) + (hash >>> 8) % 3 * 4}%)`;

	colours.set(`= ${text}`, made);
	return made;
}

function is_dark() {
	const chosen = document.documentElement.dataset.theme;

	return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function redraw_all() {
	colours = new Map();
	for (const each of pictures)
		each.draw();
}

/*
 * A canvas: paint(context, width, height) in CSS pixels, drawn at most once a frame. label: what is read in its place.
 */
function picture(height, label, paint, attributes = {}) {
	const canvas = tag("canvas", { role: "img", "aria-label": label, ...attributes });
	const self = { canvas, height, pending: false, width: 0, label(text) { canvas.setAttribute("aria-label", plain(text)); }, draw, now };

	function now() {
		const scale = devicePixelRatio || 1, width = self.width || canvas.clientWidth;

		self.pending = false;
		if (!width)
			return;
		self.width = width;
		if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(self.height * scale)) {
			canvas.width = Math.round(width * scale);
			canvas.height = Math.round(self.height * scale);
			if (!canvas.classList.contains("spark"))
				canvas.style.height = `${self.height}px`;
		}
		const context = canvas.getContext("2d");
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.clearRect(0, 0, width, self.height);
		context.font = "11px system-ui, sans-serif";
		context.textBaseline = "middle";
		paint(context, width, self.height);
	}

	function draw() {
		if (!self.pending) {
			self.pending = true;
			requestAnimationFrame(now);
		}
	}

	pictures.add(self);
	new ResizeObserver((entries) => {
		const width = Math.round(entries[0].contentRect.width);

		if (width !== self.width) {
			self.width = width;
			draw();
		}
	}).observe(canvas);
	draw();
	return self;
}

/* For text that need not fit: cut, or left out. */
function fit(context, text, x, y, width) {
	text = plain(text);
	if (width < 18)
		return;
	if (context.measureText(text).width > width) {
		const letter = context.measureText("n").width;
		let length = Math.floor(width / letter);

		while (length > 1 && context.measureText(text.slice(0, length) + "\u2026").width > width)
			length--;
		if (length < 2)
			return;
		text = text.slice(0, length) + "\u2026";
	}
	context.fillText(text, x, y);
}

/* ---- axes ---- */

/* Round values from low to high, about `most` of them. */
function ticks(low, high, most) {
	const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough || 1));
	const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) || 1, found = [];

	for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12) && found.length < 100; i++)
		found.push(i * step);
	return found;
}

/* A time, in the unit of largest, as precise as step, both ns. */
function moment(ns, step = 1e6, largest = 1e9) {
	const [unit, name] = largest >= 1e9 ? [1e9, "s"] : largest >= 1e6 ? [1e6, "ms"] : [1e3, "\u00b5s"];
	const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));

	return `${(ns / unit).toFixed(places)} ${name}`;
}

/* 1, 2, 5 times powers of ten between low and high; majors are the powers. */
function log_ticks(low, high) {
	const found = [], few = Math.log10(high / low) < 1.6;

	if (high < 4 * low)
		return ticks(low, high, 5).map((value) => ({ value, label: true }));

	for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
		for (const factor of [1, 2, 5]) {
			if (power * factor >= low && power * factor <= high)
				found.push({ value: power * factor, label: factor === 1 || few });
		}
	}
	return found;
}

function time_axis(context, left, width, y, from, to) {
	const marks = ticks(from, to, width / 110), step = marks.length > 1 ? marks[1] - marks[0] : to - from;

	context.fillStyle = colour("dim");
	context.strokeStyle = colour("line");
	context.lineWidth = 1;
	context.textAlign = "left";
	for (const mark of marks) {
		const x = Math.round(left + (mark - from) / (to - from) * width) + 0.5;

		context.beginPath();
		context.moveTo(x, y);
		context.lineTo(x, y + 5);
		context.stroke();
		fit(context, moment(mark, step, to), x + 3, y + 9, left + width - x - 3);
	}
}

/* Pointer position within a canvas, in CSS pixels. */
function position(canvas, event) {
	const box = canvas.getBoundingClientRect();

	return { x: event.clientX - box.left, y: event.clientY - box.top };
}
