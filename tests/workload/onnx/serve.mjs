// SPDX-License-Identifier: BSD-2-Clause
// Serves a model with ONNX Runtime's npm package, and measures itself.
//
// node serve.mjs MODEL [--batch N] [--sessions N] [--runs N] [--seconds N] [--rate HZ] [--concurrency N]
//	[--wait] [--recreate] [--profile PREFIX]
//
// Prints {"ready":true,"pid":N} when the sessions exist, at the end one line with what it did. --wait: sessions are made
// first, the runs begin when a line comes on standard input. --recreate: release the sessions after the runs, make
// new ones, run again. --seconds: instead of a number of runs, until so much time has passed (0: until SIGTERM).
// --profile: ONNX Runtime's own profiler writes a file of each session.
import { createRequire } from 'node:module';
import { once } from 'node:events';
import path from 'node:path';
import process from 'node:process';

function options(args) {
	const result = { model: null, batch: 1, sessions: 1, runs: 200, seconds: null, rate: 0, concurrency: 1,
		profile: '' };
	const switches = new Set(['wait', 'recreate']);
	while (args.length) {
		const word = args.shift();
		if (!word.startsWith('--'))
			result.model = word;
		else if (switches.has(word.slice(2)))
			result[word.slice(2)] = true;
		else if (word.slice(2) in result && args.length)
			result[word.slice(2)] = word === '--profile' ? args.shift() : Number(args.shift());
		else
			throw new Error(`bad option ${word}`);
	}
	if (!result.model)
		throw new Error('no model');
	return result;
}

// The package lies in build/npm, not beside this script: XPUTRACE_NPM says where.
function runtime() {
	const folder = process.env.XPUTRACE_NPM ?? path.join(process.cwd(), 'build/npm');
	return createRequire(path.join(folder, 'package.json'))('onnxruntime-node');
}

const settings = options(process.argv.slice(2));
const ort = runtime();
const values = Float32Array.from({ length: settings.batch * 64 }, (_, i) => (i % 64) / 64);
const input = new ort.Tensor('float32', values, [settings.batch, 64]);
const statistics = [];
let stopped = false;
process.on('SIGTERM', () => { stopped = true; });

async function sessionsCreate() {
	const made = [];
	const profiler = settings.profile ? { enableProfiling: true, profileFilePrefix: settings.profile } : {};
	for (let i = 0; i < settings.sessions; i++)
		made.push(await ort.InferenceSession.create(settings.model, { intraOpNumThreads: 1, ...profiler }));
	return made;
}

async function sessionsRelease(sessions) {
	for (const session of sessions) {
		if (settings.profile)
			session.endProfiling();
		await session.release();
	}
}

async function measure(session, statistic) {
	const start = process.hrtime.bigint();
	await session.run({ input });
	statistic.runs++;
	statistic.total_us += Number(process.hrtime.bigint() - start) / 1000;
}

// Runs wait for their turn at the rate; a timer that is late does not make the next one late too.
async function serve(session, statistic, deadline) {
	const period = settings.rate ? 1000 / settings.rate : 0;
	let next = performance.now();
	for (let i = 0; !stopped; i++) {
		if (deadline ? performance.now() >= deadline : i >= settings.runs)
			return;
		if (period) {
			next += period;
			await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
		}
		await measure(session, statistic);
	}
}

async function round(sessions) {
	let deadline = 0;
	if (settings.seconds !== null)
		deadline = settings.seconds ? performance.now() + settings.seconds * 1000 : Infinity;
	const running = [];
	for (const session of sessions) {
		const statistic = { runs: 0, total_us: 0 };
		statistics.push(statistic);
		for (let i = 0; i < settings.concurrency; i++)
			running.push(serve(session, statistic, deadline));
	}
	await Promise.all(running);
}

let sessions = settings.wait || settings.seconds !== null ? await sessionsCreate() : null;
console.log(JSON.stringify({ ready: true, pid: process.pid }));
if (settings.wait)
	await once(process.stdin, 'data');
process.stdin.destroy();
sessions ??= await sessionsCreate();
await round(sessions);
if (settings.recreate) {
	await sessionsRelease(sessions);
	sessions = await sessionsCreate();
	await round(sessions);
}
await sessionsRelease(sessions);
const sum = (field) => statistics.reduce((total, one) => total + one[field], 0);
console.log(JSON.stringify({
	runtime: 'onnxruntime', pid: process.pid,
	runs: sum('runs'),
	mean_us: sum('total_us') / sum('runs'),
	sessions: statistics.map((one) => ({ runs: one.runs, mean_us: one.total_us / one.runs })),
}));
