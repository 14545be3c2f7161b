/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flame graph as one SVG document that needs nothing else: without its script it is a picture, in a browser it can be searched and
 * zoomed. The root is at the bottom; what is narrower than a tenth of a pixel is left out.
 */
#include <stdlib.h>

#include "model/program/processes.h"
#include "report/flame/flame.h"

#define WIDTH 1200
#define SIDE 10	 /* left and right */
#define ABOVE 50 /* title and buttons */
#define BELOW 30 /* what the pointer is on */
#define ROW 16
#define CHARACTER 6.6 /* width of one of 11 px */
#define NARROWEST 0.1 /* px */

/* Frames: rect and text, with where they are and how wide as parts of the whole: data-x, data-w; data-d: depth, data-n: name. */
static const char script[] =
	"(function () {\n"
	"'use strict';\n"
	"var svg = document.documentElement, side = 10, width = 1180, character = 6.6;\n"
	"var frames = Array.prototype.slice.call(svg.querySelectorAll('g.f')).map(function (g) {\n"
	"  return {g: g, rect: g.querySelector('rect'), text: g.querySelector('text'), name: g.getAttribute('data-n'),\n"
	"          x: +g.getAttribute('data-x'), w: +g.getAttribute('data-w'), depth: +g.getAttribute('data-d'),\n"
	"          fill: g.querySelector('rect').getAttribute('fill')};\n"
	"});\n"
	"var details = svg.getElementById('details'), matched = svg.getElementById('matched'), reset = svg.getElementById('reset');\n"
	"function fit(name, pixels) {\n"
	"  var room = Math.floor((pixels - 6) / character), all = Array.from(name);\n"
	"  return room < 3 ? '' : all.length <= room ? name : all.slice(0, room - 2).join('') + '..';\n"
	"}\n"
	"function zoom(to) {\n"
	"  frames.forEach(function (f) {\n"
	"    var left = (f.x - to.x) / to.w, right = (f.x + f.w - to.x) / to.w, inside = right > 1e-9 && left < 1 - 1e-9;\n"
	"    left = Math.max(left, 0); right = Math.min(right, 1);\n"
	"    var pixels = (right - left) * width;\n"
	"    f.g.style.display = inside && pixels >= 0.1 ? '' : 'none';\n"
	"    if (!inside) return;\n"
	"    f.g.style.opacity = f.depth < to.depth ? 0.5 : 1;\n"
	"    f.rect.setAttribute('x', side + left * width);\n"
	"    f.rect.setAttribute('width', pixels);\n"
	"    f.text.setAttribute('x', side + left * width + 3);\n"
	"    f.text.textContent = fit(f.name, pixels);\n"
	"  });\n"
	"  reset.style.display = to.depth ? '' : 'none';\n"
	"}\n"
	"function search(term) {\n"
	"  var pattern = null, found = [], part = 0, end = 0;\n"
	"  if (term) try { pattern = new RegExp(term); } catch (error) { matched.textContent = 'no regular expression'; return; }\n"
	"  frames.forEach(function (f) {\n"
	"    var hit = pattern && pattern.test(f.name);\n"
	"    f.rect.setAttribute('fill', hit ? 'rgb(230,0,230)' : f.fill);\n"
	"    if (hit) found.push(f);\n"
	"  });\n"
	"  found.sort(function (a, b) { return a.x - b.x || b.w - a.w; }).forEach(function (f) {\n"
	"    var begin = Math.max(f.x, end);\n"
	"    part += Math.max(f.x + f.w - begin, 0);\n"
	"    end = Math.max(end, f.x + f.w);\n"
	"  });\n"
	"  matched.textContent = pattern ? 'matched: ' + (part * 100).toFixed(2) + ' %' : '';\n"
	"}\n"
	"function ask() { var term = window.prompt('Regular expression to search for:', ''); if (term !== null) search(term); }\n"
	"var root = {x: 0, w: 1, depth: 0};\n"
	"frames.forEach(function (f) {\n"
	"  f.g.addEventListener('click', function () { zoom(f); });\n"
	"  f.g.addEventListener('mouseover', function () {\n"
	"    details.textContent = f.g.querySelector('title').textContent.replace('\\n', ': ');\n"
	"  });\n"
	"  f.g.addEventListener('mouseout', function () { details.textContent = ''; });\n"
	"});\n"
	"reset.addEventListener('click', function () { zoom(root); });\n"
	"svg.getElementById('search').addEventListener('click', ask);\n"
	"window.addEventListener('keydown', function (event) {\n"
	"  if ((event.ctrlKey || event.metaKey) && event.key === 'f') { event.preventDefault(); ask(); }\n"
	"  else if (event.key === 'Escape') { search(''); zoom(root); }\n"
	"});\n"
	"window.flame = {zoom: function (index) { zoom(index < 0 ? root : frames[index]); }, search: search};\n"
	"zoom(root);\n"
	"})();\n";

struct svg {
	struct text *text;
	bool diff;
	__u64 time; /* ns, of all */
	double totals[2];
	double most; /* largest difference of shares */
	unsigned int depth;
};

/* In hundredths, without trailing noise of the binary. */
static void add_decimal(struct text *text, double value)
{
	const __u64 hundredths = value > 0 ? (__u64)(value * 100 + 0.5) : 0;

	text_unsigned(text, hundredths / 100);
	text_literal(text, ".");
	text_unsigned(text, hundredths / 10 % 10);
	text_unsigned(text, hundredths % 10);
}

/* Text of an element or attribute, cut to a number of characters; 0: all. */
static void add_escaped(struct text *text, const char *name, size_t most)
{
	struct text clean = {};
	size_t at = 0, characters = 0, all = 0;
	bool cut;

	flame_add_name(&clean, name);
	for (size_t i = 0; i < clean.length; i++)
		all += (clean.data[i] & 0xc0) != 0x80;
	cut = most && all > most;
	for (; at < clean.length; at++) {
		characters += (clean.data[at] & 0xc0) != 0x80;
		if (cut && characters > most - 2)
			break;
		if (clean.data[at] == '&')
			text_literal(text, "&amp;");
		else if (clean.data[at] == '<')
			text_literal(text, "&lt;");
		else if (clean.data[at] == '>')
			text_literal(text, "&gt;");
		else if (clean.data[at] == '"')
			text_literal(text, "&quot;");
		else
			text_bytes(text, clean.data + at, 1);
	}
	if (cut)
		text_literal(text, "..");
	if (clean.error)
		text_fail(text);
	text_free(&clean);
}

static double share(const struct svg *svg, const struct flame_node *node, unsigned int column)
{
	return svg->totals[column] > 0 ? (double)node->total[column] / svg->totals[column] : 0;
}

static void add_time(struct text *text, __u64 nanoseconds)
{
	text_microseconds(text, nanoseconds);
	text_literal(text, " us");
}

static void add_color(struct text *text, unsigned int red, unsigned int green, unsigned int blue)
{
	text_literal(text, "rgb(");
	text_unsigned(text, red);
	text_literal(text, ",");
	text_unsigned(text, green);
	text_literal(text, ",");
	text_unsigned(text, blue);
	text_literal(text, ")");
}

/* Red: its share has grown; blue: it has shrunk. */
static void add_difference_color(const struct svg *svg, const struct flame_node *node)
{
	const double change = share(svg, node, 1) - share(svg, node, 0);
	const double part = svg->most > 0 ? (change < 0 ? -change : change) / svg->most : 0;
	const unsigned int pale = 240 - (unsigned int)(130 * part);

	if (change > 0)
		add_color(svg->text, 245, pale, pale);
	else
		add_color(svg->text, pale, pale, 245);
}

static const unsigned char colors[FLAME_KINDS][3] = {
	[FRAME_UNKNOWN] = { 190, 190, 190 },   [FRAME_NATIVE] = { 232, 150, 84 },   [FRAME_PYTHON] = { 92, 156, 214 },
	[FRAME_JAVASCRIPT] = { 220, 200, 70 }, [FRAME_KERNEL] = { 150, 130, 205 },  [FLAME_PARTIAL] = { 215, 215, 215 },
	[FLAME_PROGRAM] = { 104, 184, 104 },   [FLAME_OPERATOR] = { 88, 184, 170 },
};

static void add_kind_color(struct text *text, unsigned int kind, unsigned int shade)
{
	add_color(text, colors[kind][0] + shade, colors[kind][1] + shade, colors[kind][2] + shade);
}

static void add_title(const struct svg *svg, const struct flame_node *node, const char *name)
{
	struct text *text = svg->text;

	text_literal(text, "<title>");
	add_escaped(text, name, 0);
	text_literal(text, "\n");
	add_time(text, node->total[1]);
	text_literal(text, ", ");
	add_decimal(text, 100 * share(svg, node, 1));
	text_literal(text, " %");
	if (svg->diff) {
		text_literal(text, "; before: ");
		add_time(text, node->total[0]);
		text_literal(text, ", ");
		add_decimal(text, 100 * share(svg, node, 0));
		text_literal(text, " %");
	}
	if (node->label && node->label->kind < FRAME_KINDS) {
		text_literal(text, ", ");
		text_string(text, flame_kind_name(node->label->kind));
	}
	if (node->label && node->label->frame && node->label->frame->module && node->label->frame->module->path) {
		text_literal(text, ", ");
		add_escaped(text, node->label->frame->module->path, 0);
	}
	text_literal(text, "</title>");
}

static void add_frame(const struct svg *svg, const struct flame_node *node, double x, unsigned int depth)
{
	const char *name = node->label ? node->label->name : "all";
	const double part = share(svg, node, 1), left = SIDE + x * (WIDTH - 2 * SIDE),
		     pixels = part * (WIDTH - 2 * SIDE);
	const unsigned int y = ABOVE + (svg->depth - depth) * ROW;
	const double room = (pixels - 6) / CHARACTER;
	struct text *text = svg->text;

	text_literal(text, "<g class=\"f\" data-x=\"");
	text_real(text, x);
	text_literal(text, "\" data-w=\"");
	text_real(text, part);
	text_literal(text, "\" data-d=\"");
	text_unsigned(text, depth);
	text_literal(text, "\" data-n=\"");
	add_escaped(text, name, 0);
	text_literal(text, "\">");
	add_title(svg, node, name);
	text_literal(text, "<rect x=\"");
	add_decimal(text, left);
	text_literal(text, "\" y=\"");
	text_unsigned(text, y);
	text_literal(text, "\" width=\"");
	add_decimal(text, pixels);
	text_literal(text, "\" height=\"15\" rx=\"1\" fill=\"");
	if (!node->label)
		add_color(text, 225, 225, 225);
	else if (svg->diff)
		add_difference_color(svg, node);
	else
		add_kind_color(text, node->label->kind, (unsigned int)(text_hash(node->label->name) % 32));
	text_literal(text, "\"/><text x=\"");
	add_decimal(text, left + 3);
	text_literal(text, "\" y=\"");
	text_unsigned(text, y + 11);
	text_literal(text, "\">");
	if (room >= 3)
		add_escaped(text, name, (size_t)room);
	text_literal(text, "</text></g>\n");
}

static bool is_wide(const struct svg *svg, const struct flame_node *node)
{
	return share(svg, node, 1) * (WIDTH - 2 * SIDE) >= NARROWEST;
}

/* Nodes are visited with their depths; left: what lies left of each node's next child, by depth. */
static void add_frames(const struct svg *svg, const struct flame_tree *tree)
{
	const struct flame_node *node = tree->nodes[0];
	double left[FLAME_DEPTH_MAX + 1] = {};
	unsigned int depth = 0;

	while (node) {
		const double x = left[depth];

		left[depth] += share(svg, node, 1);
		if (is_wide(svg, node)) {
			add_frame(svg, node, x, depth);
			if (node->first) {
				node = node->first;
				left[++depth] = x;
				continue;
			}
		}
		while (node && !node->next) {
			node = node->parent;
			depth -= !!node;
		}
		node = node ? node->next : NULL;
	}
}

static void measure(struct svg *svg, const struct flame_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_node *node = tree->nodes[i];
		const double change = share(svg, node, 1) - share(svg, node, 0);
		unsigned int depth = 0;

		if (!is_wide(svg, node))
			continue;
		for (const struct flame_node *each = node; each->parent; each = each->parent)
			depth++;
		if (depth > svg->depth)
			svg->depth = depth;
		if (svg->diff && node->parent && (change < 0 ? -change : change) > svg->most)
			svg->most = change < 0 ? -change : change;
	}
}

static void add_label(struct text *text, const char *id, const char *x, unsigned int y, const char *rest,
		      const char *label)
{
	text_literal(text, "<text id=\"");
	text_string(text, id);
	text_literal(text, "\" x=\"");
	text_string(text, x);
	text_literal(text, "\" y=\"");
	text_unsigned(text, y);
	text_literal(text, "\"");
	text_string(text, rest);
	text_literal(text, ">");
	add_escaped(text, label, 0);
	text_literal(text, "</text>\n");
}

static void add_legend(const struct svg *svg)
{
	struct text *text = svg->text;

	text_literal(text, "<text x=\"10\" y=\"40\">");
	if (svg->diff)
		text_literal(text, "red: its share is larger than before; blue: smaller");
	for (unsigned int kind = 0; kind < FLAME_KINDS && !svg->diff; kind++) {
		text_literal(text, "<tspan fill=\"");
		add_kind_color(text, kind, 0);
		text_literal(text, "\">\xe2\x96\x88</tspan> ");
		text_string(text, flame_kind_name(kind));
		text_literal(text, "  ");
	}
	text_literal(text, "</text>\n");
}

static void add_head(const struct svg *svg, unsigned int height, const struct flame_words *words)
{
	struct text *text = svg->text;

	text_literal(
		text,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"");
	text_unsigned(text, height);
	text_literal(text, "\" viewBox=\"0 0 1200 ");
	text_unsigned(text, height);
	text_literal(
		text,
		"\">\n<style>text{font:11px monospace;fill:#000}g.f{cursor:pointer}g.f:hover rect{stroke:#000;stroke-width:0.5}"
		".button{cursor:pointer;fill:#0645ad}#heading{font-size:16px}</style>\n"
		"<rect width=\"100%\" height=\"100%\" fill=\"#fdfdf8\"/>\n");
	text_literal(text, "<text id=\"heading\" x=\"600\" y=\"22\" text-anchor=\"middle\">");
	text_string(text, words->title);
	text_literal(text, ": ");
	add_time(text, svg->time);
	text_literal(text, "</text>\n");
	add_label(text, "search", "1190", 22, " class=\"button\" text-anchor=\"end\"", "search");
	add_label(text, "reset", "10", 22, " class=\"button\" style=\"display:none\"", "reset zoom");
	add_label(text, "matched", "1190", 40, " text-anchor=\"end\"", "");
	add_legend(svg);
	add_label(text, "details", "10", height - 10, "", "");
}

void flame_add_svg(struct text *text, const struct flame_tree *tree, bool diff, const struct flame_words *words)
{
	struct svg svg = { .text = text,
			   .diff = diff,
			   .time = tree->nodes[0]->total[1],
			   .totals = { (double)tree->nodes[0]->total[0], (double)tree->nodes[0]->total[1] } };
	unsigned int height;

	measure(&svg, tree);
	height = ABOVE + (svg.depth + 1) * ROW + BELOW;
	add_head(&svg, height, words);
	add_frames(&svg, tree);
	text_literal(text, "<script><![CDATA[\n");
	text_bytes(text, script, sizeof(script) - 1);
	text_literal(text, "]]></script>\n</svg>\n");
}
