/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of programs, and of the one that is chosen the distribution of its latency and how it went over time. */

function spark(program, data) {
	const series = program.series, most = Math.max(1, ...series);

	return picture(20, `Inferences over time: at most ${count(most)} in ${duration(data.bins.width)}`, (context, width, height) => {
		context.fillStyle = colour("bar");
		for (let i = 0; i < series.length; i++) {
			const size = series[i] / most * (height - 1), x = Math.floor(i / series.length * width);

			context.fillRect(x, height - size, Math.max(1, Math.ceil((i + 1) / series.length * width) - x), size);
		}
	}, { class: "spark" }).canvas;
}

function stack_of(components, data) {
	const whole = sum(components, (each) => each);

	return tag("span", { class: "stack", role: "img", "aria-label": components.map((each, i) => each ? `${data.components[i].name} ${percent(each / whole)}` : null).filter(Boolean).join(", "),
		title: components.map((each, i) => each ? `${data.components[i].name} ${percent(each / whole)}` : null).filter(Boolean).join("\n") },
		components.map((each, i) => tag("i", { style: { width: `${whole ? 100 * each / whole : 0}%`, background: `var(--${data.components[i].colour})` } })));
}

function legend(items) {
	return tag("div", { class: "legend", "aria-hidden": "true" }, items.map((each) => tag("span", {}, tag("i", { style: { background: `var(--${each.colour})` } }), each.name)));
}

function used_components(data) {
	return data.components.filter((_, i) => data.programs.some((program) => program.typical.components[i] || program.slow.components[i]));
}

/* Of language models: prompts, and the tokens of answers. */
function tokens_table(rows, caption) {
	const time = (title, key) => ({ title, of: (row) => row.token ? row.token[key] : -1, cell: (row) => row.token ? duration(row.token[key]) : "\u2013", number: true });

	return table([
		{ title: "Language model", of: (row) => row.name, head: true }, { title: "Runtime", of: (row) => row.runtime }, { title: "Process", of: (row) => row.pid, number: true },
		{ title: "Phase", of: (row) => row.phase }, { title: "Batches", of: (row) => row.batches, cell: (row) => count(row.batches), number: true },
		{ title: "Tokens", of: (row) => row.tokens, cell: (row) => count(row.tokens), number: true },
		{ title: "Tokens a second", of: (row) => row.time ? row.tokens / row.time : -1, cell: (row) => row.time ? rate(row.tokens / row.time * 1e9) : "\u2013", number: true, help: "While its batches ran" },
		{ title: "Time", of: (row) => row.phase === "prefill" ? "to first token" : "per output token" },
		time("Mean", "mean"), time("p50", "p50"), time("p90", "p90"), time("p99", "p99"), time("max", "max"),
	], rows, { caption, limit: 20 }).element;
}

function programs_section(data, chosen) {
	const quantile = (name) => ({ title: name, of: (row) => row.latency ? row.latency[name] : -1, cell: (row) => row.latency ? duration(row.latency[name]) : "\u2013", number: true });
	const rows = table([
		{ title: "Program", of: (row) => row.name, head: true },
		{ title: "Runtime", of: (row) => row.runtime },
		{ title: "Process", of: (row) => row.process },
		{ title: "Inferences", of: (row) => row.inferences, cell: (row) => count(row.inferences), number: true },
		{ title: "a second", of: (row) => row.inferences / data.summary.duration_ns, cell: (row) => rate(row.inferences / data.summary.duration_ns * 1e9), number: true },
		{ title: "Over time", cell: (row) => spark(row, data) },
		quantile("p50"), quantile("p90"), quantile("p99"), quantile("max"),
		{ title: "Failed", of: (row) => row.failed, cell: (row) => tag("span", { class: row.failed ? "bad" : null }, count(row.failed)), number: true },
		{ title: "Typical inference", cell: (row) => stack_of(row.typical.components, data), help: "What its time goes to, on average between p40 and p60" },
	], data.programs, { caption: "Programs", chosen, sort: 3, tall: data.programs.length > 14, limit: 50, selected: data.programs[0] });

	return section("programs", "Programs", "Choose one: what follows is about it. Latencies in the log-scaled histogram and the heat map are exact counts.",
		rows.element, legend(used_components(data)),
		data.tokens.length ? [tag("h3", { style: { marginTop: "10px" } }, "Tokens of language models"), tokens_table(data.tokens, "Tokens of language models")] : null);
}

/* ---- distribution ---- */

const QUANTILES = [["min", "Fastest"], ["p50", "p50"], ["p90", "p90"], ["p95", "p95"], ["p99", "p99"], ["p999", "p99.9"], ["max", "Slowest"], ["mean", "Mean"], ["stddev", "Deviation"]];

/* x of a duration on a logarithmic axis. */
function log_place(program, left, width) {
	const low = Math.log(program.low), high = Math.log(program.high);

	return (value) => left + (Math.log(Math.max(value, program.low)) - low) / (high - low) * width;
}

function limits(program) {
	const used = program.histogram, { bounds } = program;

	program.low = Math.max(1, bounds[used[0][0]]);
	program.high = Math.max(program.low * 1.5, bounds[used[used.length - 1][0] + 1]);
}

function histogram(program) {
	const most = Math.max(1, ...program.histogram.map((each) => each[1])), read = tag("div", { class: "read", "aria-live": "polite" });
	const foot = 18, head = 40, marks = [["p50", program.latency.p50], ["p90", program.latency.p90], ["p99", program.latency.p99]];
	let over = -1;

	function paint(context, width, height) {
		const place = log_place(program, 8, width - 16), base = height - foot;

		program.histogram.forEach(([bucket, number], i) => {
			const x = place(program.bounds[bucket]), end = place(program.bounds[bucket + 1]), size = Math.max(1, number / most * (base - head));

			context.fillStyle = colour(i === over ? "accent" : "bar");
			context.fillRect(x, base - size, Math.max(1, end - x - (end - x > 4 ? 1 : 0)), size);
		});
		context.strokeStyle = colour("strong");
		context.fillStyle = colour("dim");
		context.fillRect(8, base, width - 16, 1);
		for (const tick of log_ticks(program.low, program.high)) {
			const x = place(tick.value);

			context.fillRect(x, base, 1, tick.label ? 5 : 3);
			if (tick.label)
				fit(context, duration(tick.value).replace(/\.0+ /, " "), x + 3, base + 10, width - x - 3);
		}
		const taken = [0, 0, 0];
		for (const [name, value] of marks) {
			const x = place(value), text = `${name} ${duration(value)}`, wide = context.measureText(text).width, at = Math.min(Math.max(2, x - wide / 2), width - wide - 2);
			const level = Math.max(0, taken.findIndex((end) => at > end)), y = 7 + 12 * level;

			context.strokeStyle = colour("text");
			context.setLineDash([3, 3]);
			context.beginPath();
			context.moveTo(x + 0.5, y + 6);
			context.lineTo(x + 0.5, base);
			context.stroke();
			context.setLineDash([]);
			context.fillStyle = colour("text");
			context.fillText(text, at, y);
			taken[level] = at + wide + 6;
		}
	}

	function show(index) {
		over = Math.max(-1, Math.min(program.histogram.length - 1, index));
		const bucket = program.histogram[over], below = over >= 0 ? sum(program.histogram.slice(0, over + 1), (each) => each[1]) : 0;

		replace(read, bucket ? [tag("b", {}, `${duration(program.bounds[bucket[0]])} to ${duration(program.bounds[bucket[0] + 1])}`), `: ${counted(bucket[1], "inference")}; ${percent(below / program.latency.count)} are not slower`] : "");
		self.draw();
	}

	const self = picture(190, `Histogram of the latency of ${program.name}, logarithmic: half of the inferences took up to ${duration(program.latency.p50)}, 99 % up to ${duration(program.latency.p99)}, the slowest ${duration(program.latency.max)}. Arrow keys read the bars.`, paint, { tabindex: 0 });
	self.canvas.addEventListener("pointermove", (event) => {
		const place = log_place(program, 8, self.width - 16), { x } = position(self.canvas, event);

		show(program.histogram.findIndex(([bucket]) => x >= place(program.bounds[bucket]) && x < place(program.bounds[bucket + 1])));
	});
	self.canvas.addEventListener("pointerleave", () => show(-1));
	self.canvas.addEventListener("keydown", (event) => {
		if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
			event.preventDefault();
			show(Math.max(0, over + (event.key === "ArrowRight" ? 1 : -1)));
		}
	});
	return tag("div", { class: "block" }, tag("h3", {}, "Distribution"), tag("div", { class: "chart" }, self.canvas), read);
}

function quantile_table(program) {
	return tag("div", { class: "scroll" }, tag("table", {}, tag("caption", { class: "hidden" }, "Percentiles"), tag("tbody", {},
		tag("tr", {}, QUANTILES.map(([key, name]) => program.latency[key] === undefined ? null : tag("th", { scope: "col", class: "number" }, name))),
		tag("tr", {}, QUANTILES.map(([key]) => program.latency[key] === undefined ? null : tag("td", { class: "number" }, duration(program.latency[key])))))));
}

/* ---- over time ---- */

function heat_map(program, data, go) {
	const cells = program.heat, foot = 18, left = 54, read = tag("div", { class: "read", "aria-live": "polite" });
	const begin_of = (bin) => data.begin + bin * data.bins.width;
	let most = 1, cursor = null;

	for (let i = 2; i < cells.length; i += 3)
		most = Math.max(most, cells[i]);

	function paint(context, width, height) {
		const place = log_place(program, 0, 1), base = height - foot, step = (width - left) / data.bins.count;

		for (let i = 0; i < cells.length; i += 3) {
			const top = base - place(program.bounds[cells[i + 1] + 1]) * (base - 4), bottom = base - place(program.bounds[cells[i + 1]]) * (base - 4);
			const x = Math.floor(left + cells[i] * step);

			context.globalAlpha = 0.12 + 0.88 * Math.log(1 + cells[i + 2]) / Math.log(1 + most);
			context.fillStyle = colour("heat-high");
			context.fillRect(x, Math.floor(top), Math.max(1, Math.floor(left + (cells[i] + 1) * step) - x), Math.max(1, Math.floor(bottom) - Math.floor(top)));
		}
		context.globalAlpha = 1;
		context.fillStyle = colour("dim");
		context.textAlign = "right";
		for (const tick of log_ticks(program.low, program.high)) {
			const y = base - place(tick.value) * (base - 4);

			context.fillRect(left - (tick.label ? 5 : 3), Math.round(y), tick.label ? 5 : 3, 1);
			if (tick.label)
				context.fillText(duration(tick.value).replace(/\.0+ /, " "), left - 8, Math.min(Math.max(y, 7), base - 5));
		}
		context.textAlign = "left";
		context.fillRect(left, base, width - left, 1);
		time_axis(context, left, width - left, base, data.begin, data.end);
		if (cursor !== null) {
			context.strokeStyle = colour("accent");
			context.strokeRect(left + cursor * step + 0.5, 1.5, Math.max(2, step), base - 2);
		}
	}

	function show(bin) {
		cursor = bin === null ? null : Math.max(0, Math.min(data.bins.count - 1, bin));
		if (cursor === null) {
			replace(read, "");
		} else {
			let number = 0, low = Infinity, high = 0;

			for (let i = 0; i < cells.length; i += 3) {
				if (cells[i] === cursor) {
					number += cells[i + 2];
					low = Math.min(low, cells[i + 1]);
					high = Math.max(high, cells[i + 1] + 1);
				}
			}
			replace(read, tag("b", {}, `${moment(begin_of(cursor))} to ${moment(begin_of(cursor + 1))}`), number ?
				`: ${counted(number, "inference")}, ${duration(program.bounds[low])} to ${duration(program.bounds[high])}; Enter or a click shows it in the timeline` : ": none");
		}
		self.draw();
	}

	const self = picture(190, `Heat map of the latency of ${program.name} over time. Arrow keys move through time, Enter shows it in the timeline.`, paint, { tabindex: 0 });
	const bin_at = (event) => Math.floor((position(self.canvas, event).x - left) / (self.width - left) * data.bins.count);
	const visit = (bin) => go(begin_of(bin), begin_of(bin + 1));
	self.canvas.addEventListener("pointermove", (event) => show(bin_at(event) < 0 ? null : bin_at(event)));
	self.canvas.addEventListener("pointerleave", () => show(null));
	self.canvas.addEventListener("click", (event) => bin_at(event) >= 0 && visit(bin_at(event)));
	self.canvas.addEventListener("keydown", (event) => {
		if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
			event.preventDefault();
			show(cursor === null ? 0 : cursor + (event.key === "ArrowRight" ? 1 : -1));
		} else if (event.key === "Enter" && cursor !== null) {
			visit(cursor);
		}
	});
	return tag("div", { class: "block" }, tag("h3", {}, "Over time"), tag("div", { class: "chart" }, self.canvas), read);
}

function program_part(program, data, go) {
	const tokens = data.tokens.filter((each) => each.name === program.name && each.runtime === program.runtime && program.pids.includes(each.pid));

	if (!program.latency || !program.histogram.length)
		return tag("p", { class: "empty" }, "No inference of it was recorded with a duration.");
	limits(program);
	return [tag("div", { class: "columns" }, histogram(program), heat_map(program, data, go)), quantile_table(program),
		tokens.length ? [tag("h3", { style: { marginTop: "10px" } }, "Tokens"), tokens_table(tokens, `Tokens of ${program.name}`)] : null,
		program.sha256 ? pairs([["SHA-256 of the model", tag("code", {}, program.sha256)]]) : null];
}
