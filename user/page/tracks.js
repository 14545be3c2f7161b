/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracks over a common axis of time: rows of spans that do not overlap, and series. Zoomed by w and s, moved by a and d, as in
 * Perfetto; by wheel, dragging and arrow keys, too. Several views may share one range.
 */

class Range {
	constructor(low, high) {
		Object.assign(this, { low, high: Math.max(high, low + 1), from: low, to: Math.max(high, low + 1), views: [] });
	}

	set(from, to) {
		const width = Math.min(Math.max(to - from, 20), this.high - this.low);

		from = Math.min(Math.max(from, this.low), this.high - width);
		this.from = from;
		this.to = from + width;
		for (const each of this.views)
			each();
	}

	zoom(factor, at) {
		this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
	}

	move(part) {
		const by = (this.to - this.from) * part;

		this.set(this.from + by, this.to + by);
	}
}

/* The first index whose value, values being in order, is above limit. */
function first_above(values, limit, from = 0) {
	let low = from, high = values.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (values[middle] > limit)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Rows of spans, each {start, end}: they are put on the first row where they do not overlap, but for what has a depth, which is its row.
 * A row has columns in order of time. spans: {start, end, name, colour, depth, about}.
 */
function rows_of(spans, most) {
	const rows = [], ends = [];
	let left_out = 0;

	spans.sort((a, b) => a.start - b.start || b.end - a.end);
	for (const span of spans) {
		let row = span.depth ?? ends.findIndex((end) => end <= span.start);

		if (row < 0)
			row = ends.length;
		if (row >= most || (span.depth !== undefined && (ends[row] || 0) > span.start + 1)) {
			left_out++;
			continue;
		}
		while (rows.length <= row) {
			rows.push([]);
			ends.push(0);
		}
		rows[row].push(span);
		ends[row] = span.end;
	}
	return { rows: rows.map((row) => ({ spans: row, starts: Float64Array.from(row, (each) => each.start), ends: Float64Array.from(row, (each) => each.end) })), left_out };
}

const ROW = 17;

/* A track of spans. */
function span_track(title, spans, { most = 8, thin = false, help = "" } = {}) {
	const { rows, left_out } = rows_of(spans, most), size = thin ? 11 : ROW;

	function paint(context, left, width, y, range) {
		const scale = width / (range.to - range.from);

		rows.forEach((row, depth) => {
			const top = y + depth * size;
			let i = first_above(row.ends, range.from);

			while (i < row.spans.length && row.starts[i] < range.to) {
				const span = row.spans[i], x = Math.max(left, left + (span.start - range.from) * scale);
				const end = Math.min(left + width, left + (span.end - range.from) * scale);

				context.fillStyle = span.colour ? colour(span.colour) : named_colour(span.tint);
				if (end - x < 1.5) {
					context.fillRect(Math.floor(x), top + 1, 1, size - 2);
					i = Math.max(i + 1, first_above(row.ends, range.from + (Math.floor(x) + 1 - left) / scale, i));
					continue;
				}
				context.fillRect(x, top + 1, Math.max(1, end - x - 0.5), size - 2);
				if (end - x > 24 && !thin) {
					context.fillStyle = colour(span.ink || "text");
					fit(context, span.name, x + 4, top + size / 2 + 0.5, end - x - 7);
				}
				i++;
			}
		});
	}

	return { title, height: Math.max(1, rows.length) * size + 4, paint, left_out, help,
		hit(time, y, slack) {
			const row = rows[Math.floor(y / size)];

			if (!row)
				return null;
			const i = first_above(row.ends, time - slack), span = row.spans[i];
			return span && span.start <= time + slack ? { span, row: Math.floor(y / size), index: i } : null;
		},
		step(found, by) {
			const row = rows[found.row], span = row && row.spans[found.index + by];

			return span ? { span, row: found.row, index: found.index + by } : null;
		},
		vertical(found, by) {
			const row = rows[found.row + by], i = row ? Math.min(row.spans.length - 1, first_above(row.ends, found.span.start)) : -1;

			return i >= 0 ? { span: row.spans[i], row: found.row + by, index: i } : null;
		},
		first(time) {
			const i = rows.length ? Math.min(rows[0].spans.length - 1, first_above(rows[0].ends, time)) : -1;

			return i >= 0 ? { span: rows[0].spans[i], row: 0, index: i } : null;
		},
		box: (found, y) => [y + found.row * size, size] };
}

/* A track of values, one a bin: bars, or with low and high a band around a line. null: none. */
function series_track(title, values, { bins: { width: bin, begin }, low = null, high = null, most = null, show, tint = "bar", height = 30 }) {
	const known = values.filter((each) => each !== null), top = most ?? Math.max(...(high || values).map((each) => each ?? -Infinity), 0);
	const bottom = low ? Math.min(...low.map((each) => each ?? Infinity)) : 0, span = top - Math.min(bottom, top) || 1;
	const base = low && bottom > 0 && bottom > top * 0.5 ? bottom - span * 0.1 : Math.min(0, bottom);

	function paint(context, left, width, y, range) {
		const scale = width / (range.to - range.from), level = (value) => y + height - 3 - (value - base) / (top - base || 1) * (height - 6);

		for (let i = Math.max(0, Math.floor((range.from - begin) / bin)); i < values.length && begin + i * bin < range.to; i++) {
			if (values[i] === null)
				continue;
			const x = Math.max(left, left + (begin + i * bin - range.from) * scale), end = Math.min(left + width, left + (begin + (i + 1) * bin - range.from) * scale);

			context.fillStyle = colour(tint);
			if (low) {
				context.globalAlpha = 0.35;
				context.fillRect(x, level(high[i]), Math.max(1, end - x), Math.max(1, level(low[i]) - level(high[i])));
				context.globalAlpha = 1;
				context.fillRect(x, level(values[i]) - 1, Math.max(1, end - x), 2);
			} else if (values[i] > 0) {
				context.fillRect(Math.floor(x), level(values[i]), Math.max(1, Math.ceil(end) - Math.floor(x)), Math.max(1, y + height - 3 - level(values[i])));
			}
		}
		context.fillStyle = colour("dim");
		context.textAlign = "right";
		fit(context, show(top), left ? left - 6 : width - 4, left ? y + 8 : y - 7, 60);
		context.textAlign = "left";
	}

	const spread = known.length ? `${show(Math.min(...known))} to ${show(Math.max(...known))}` : "no values";
	return { title, height, paint, help: spread, series: true,
		hit(time) {
			const i = Math.floor((time - begin) / bin);

			return i < 0 || i >= values.length || values[i] === null ? null :
				{ span: { name: title, start: begin + i * bin, end: begin + (i + 1) * bin, value: true,
					about: [low ? `${show(values[i])} on average, ${show(low[i])} to ${show(high[i])}` : show(values[i])] }, row: 0, index: i };
		},
		step(found, by) {
			return this.hit(begin + (found.index + by + 0.5) * bin);
		},
		vertical: () => null,
		first(time) {
			return this.hit(Math.max(begin, time) + bin / 2);
		},
		box: (found, y) => [y, height] };
}

const HELP = "w and s zoom, a and d move, 0 shows all; arrow keys go from span to span, Enter zooms to one, Escape leaves it. With the mouse: drag to move, wheel to zoom once it has the focus, double click to zoom to a span.";

/* A view of tracks. windows: {begin, width, every}: only of one in so many all spans are shown. axis(value): what a time is called. */
class Tracks {
	constructor(range, tracks, { label, windows = null, axis = null, gutter = 170 }) {
		Object.assign(this, { range, tracks, windows, axis, wanted_gutter: gutter, chosen: null, pointer: null });
		this.read = tag("div", { class: "read", "aria-live": "polite" });
		this.picture = picture(this.place(), `${label}. ${HELP}`, (context, width) => this.paint(context, width),
			{ role: "application", tabindex: 0, "aria-roledescription": "timeline", style: { cursor: "crosshair" } });
		this.element = tag("div", {}, tag("div", { class: "chart" }, this.picture.canvas), this.read);
		range.views.push(() => this.picture.draw());
		this.listen(this.picture.canvas);
	}

	/* Lays the tracks out, in a narrow window below their titles; the height of all. */
	place() {
		let y = 22;

		for (const track of this.tracks) {
			track.y = y + (this.narrow ? 13 : 0);
			y = track.y + track.height + 3;
		}
		return y + 4;
	}

	show(tracks) {
		this.tracks = tracks;
		this.chosen = null;
		this.picture.height = this.place();
		this.report(null);
		this.picture.draw();
	}

	get gutter() {
		return this.picture.width < 600 ? 0 : this.wanted_gutter;
	}

	get width() {
		return Math.max(1, this.picture.width - this.gutter);
	}

	time_at(x) {
		return this.range.from + (x - this.gutter) / this.width * (this.range.to - this.range.from);
	}

	paint(context, width) {
		if (!!this.narrow !== (this.gutter === 0)) {
			this.narrow = this.gutter === 0;
			this.picture.height = this.place();
			this.picture.draw();
			return;
		}
		const { range, gutter } = this, inner = width - gutter, scale = inner / (range.to - range.from);

		Object.assign(this.picture.canvas.dataset, { from: range.from, to: range.to });
		context.save();
		context.beginPath();
		context.rect(gutter, 0, inner, this.picture.height);
		context.clip();
		if (this.windows && this.windows.every > 1)
			this.shade(context, gutter, scale);
		time_axis(context, gutter, inner, 0, range.from, range.to);
		context.restore();
		for (const track of this.tracks) {
			context.fillStyle = colour("line");
			context.fillRect(0, track.y - (gutter ? 2 : 15), width, 1);
			track.paint(context, gutter, inner, track.y, range);
			if (gutter) {
				context.fillStyle = colour(track.series ? "dim" : "text");
				fit(context, track.title, 8, track.y + Math.min(track.height / 2, 10), gutter - (track.series ? 66 : 12));
			} else {
				context.fillStyle = colour("dim");
				fit(context, track.title, 4, track.y - 7, width - 70);
			}
		}
		if (this.chosen)
			this.frame(context, this.chosen, inner, scale);
		if (this.pointer !== null && this.pointer > gutter) {
			context.fillStyle = colour("strong");
			context.fillRect(Math.round(this.pointer), 20, 1, this.picture.height);
		}
	}

	/* Darker, where operators and waits are not shown. */
	shade(context, left, scale) {
		const { begin, width, every } = this.windows, period = width * every;

		context.fillStyle = colour("sunken");
		context.fillRect(left, 20, this.width, this.picture.height);
		context.fillStyle = colour("page");
		if (period * scale < 4)
			return;
		for (let at = begin + Math.floor((this.range.from - begin) / period) * period; at < this.range.to; at += period)
			context.fillRect(left + (at - this.range.from) * scale, 20, Math.max(1, width * scale), this.picture.height);
	}

	frame(context, { track, found }, inner, scale) {
		const [y, height] = track.box(found, track.y), x = Math.max(this.gutter, this.gutter + (found.span.start - this.range.from) * scale);
		const end = Math.min(this.gutter + inner, this.gutter + (found.span.end - this.range.from) * scale);

		if (end < this.gutter || x > this.gutter + inner)
			return;
		context.strokeStyle = colour("accent");
		context.lineWidth = 2;
		context.strokeRect(x, y, Math.max(2, end - x), height);
		context.lineWidth = 1;
	}

	at(point) {
		const track = this.tracks.find((each) => point.y >= each.y && point.y < each.y + each.height);

		if (!track || point.x < this.gutter)
			return null;
		const found = track.hit(this.time_at(point.x), point.y - track.y, track.series ? 0 : 2 * (this.range.to - this.range.from) / this.width);
		return found ? { track, found } : null;
	}

	report(hit) {
		if (!hit) {
			replace(this.read, tag("span", { class: "dim" }, tag("kbd", {}, "w"), " ", tag("kbd", {}, "s"), " zoom, ", tag("kbd", {}, "a"), " ", tag("kbd", {}, "d"), " move, ", tag("kbd", {}, "0"), " all; drag, wheel when it has the focus, double click"));
			return;
		}
		const { span } = hit.found, begin = this.axis ? this.axis(span.start) : moment(span.start);
		replace(this.read, tag("b", {}, span.name), span.value ? null : ` ${duration(span.end - span.start)}`, ` at ${begin}`, (span.about || []).map((each) => ` \u00b7 ${each}`));
	}

	choose(hit, show) {
		this.chosen = hit;
		if (hit && show) {
			const { span } = hit.found, { from, to } = this.range;

			if (span.end < from || span.start > to)
				this.range.set((span.start + span.end - (to - from)) / 2, (span.start + span.end + (to - from)) / 2);
		}
		this.report(hit);
		this.picture.draw();
	}

	zoom_to(span) {
		const more = (span.end - span.start) * 0.1 + 1;

		this.range.set(span.start - more, span.end + more);
	}

	listen(canvas) {
		let drag = null;

		canvas.addEventListener("pointerdown", (event) => {
			drag = { x: event.clientX, from: this.range.from, to: this.range.to, moved: false };
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", (event) => {
			const point = position(canvas, event);

			this.pointer = point.x;
			if (drag && Math.abs(event.clientX - drag.x) > 3)
				drag.moved = true;
			if (drag && drag.moved) {
				const by = (drag.x - event.clientX) / this.width * (drag.to - drag.from);

				this.range.set(drag.from + by, drag.to + by);
			} else {
				const hit = this.at(point);

				if (hit || !this.chosen)
					this.report(hit);
				this.picture.draw();
			}
		});
		canvas.addEventListener("pointerup", (event) => {
			if (drag && !drag.moved)
				this.choose(this.at(position(canvas, event)));
			drag = null;
		});
		canvas.addEventListener("pointerleave", () => {
			this.pointer = null;
			this.report(this.chosen);
			this.picture.draw();
		});
		canvas.addEventListener("dblclick", (event) => {
			const hit = this.at(position(canvas, event));

			if (hit)
				this.zoom_to(hit.found.span);
		});
		canvas.addEventListener("wheel", (event) => {
			if (document.activeElement !== canvas && !event.ctrlKey)
				return;
			event.preventDefault();
			if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
				this.range.move(event.deltaX / this.width);
			else
				this.range.zoom(1.002 ** event.deltaY, this.time_at(position(canvas, event).x));
		}, { passive: false });
		canvas.addEventListener("keydown", (event) => {
			if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key))
				event.preventDefault();
		});
		this.report(null);
	}

	/* Whether the key is one of those. */
	key(key) {
		const middle = this.pointer !== null && this.pointer > this.gutter ? this.time_at(this.pointer) : (this.range.from + this.range.to) / 2;
		const keys = {
			w: () => this.range.zoom(0.7, middle), s: () => this.range.zoom(1 / 0.7, middle),
			a: () => this.range.move(-0.2), d: () => this.range.move(0.2),
			0: () => this.range.set(this.range.low, this.range.high), Home: () => this.range.set(this.range.low, this.range.high),
			ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), ArrowDown: () => this.vertical(1), ArrowUp: () => this.vertical(-1),
			Enter: () => this.chosen && this.zoom_to(this.chosen.found.span), Escape: () => this.choose(null),
		};
		const action = keys[key.length === 1 ? key.toLowerCase() : key];

		if (action)
			action();
		return !!action;
	}

	step(by) {
		const next = this.chosen ? this.chosen.track.step(this.chosen.found, by) : null;

		if (next)
			this.choose({ track: this.chosen.track, found: next }, true);
		else if (!this.chosen)
			this.vertical(1);
	}

	vertical(by) {
		const inside = this.chosen && this.chosen.track.vertical(this.chosen.found, by);
		let i = this.chosen ? this.tracks.indexOf(this.chosen.track) : by > 0 ? -1 : this.tracks.length;

		if (inside) {
			this.choose({ track: this.chosen.track, found: inside }, true);
			return;
		}
		for (i += by; i >= 0 && i < this.tracks.length; i += by) {
			const found = this.tracks[i].first(this.chosen ? this.chosen.found.span.start : this.range.from);

			if (found) {
				this.choose({ track: this.tracks[i], found }, true);
				return;
			}
		}
	}
}
