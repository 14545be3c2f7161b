/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of JavaScript code that xputrace shows:
 *
 *	import {region} from "xputrace";
 *
 *	const result = region("decode", () => decode(tokens), {request: traceparent});
 *	const later = await region("fetch", async () => ...);
 *
 *	const end = begin("preprocess");
 *	...
 *	end();
 *
 * Each is a stretch of its own: those of one name may overlap, as promises do. xputrace.node, made by `make` where Node's headers are, lies
 * beside this file; where it is not, nothing is marked and `available` is false. See xpt_region(3).
 */
import {constants} from "node:os";
import {fileURLToPath} from "node:url";

function load() {
	const addon = {exports: {}};

	try {
		process.dlopen(addon, fileURLToPath(new URL("xputrace.node", import.meta.url)), constants.dlopen.RTLD_NOW);
	} catch {
		return null;
	}
	return addon.exports;
}

const native = load();

export const available = native !== null;

const nothing = () => {};

/* Begins a region on this thread; what it returns ends it, the first time. request: id of what it is for, any text. */
export function begin(name, {request} = {}) {
	let number;

	if (!native) return nothing;
	number = native.begin(String(name), request == null ? "" : String(request));
	return () => {
		if (number !== undefined) native.end(number);
		number = undefined;
	};
}

/* Runs the function inside of a region, until it has returned, or its promise is settled; what it gives. */
export function region(name, run, options) {
	const end = begin(name, options);
	let result;

	try {
		result = run();
	} catch (error) {
		end();
		throw error;
	}
	if (typeof result?.then === "function")
		return Promise.resolve(result).finally(end);
	end();
	return result;
}
