// SPDX-License-Identifier: BSD-2-Clause
// Serves models with ONNX Runtime's npm package, and measures itself.
//
// node serve.mjs MODEL... [--sessions N] [--runs N] [--seconds N] [--rate HZ] [--concurrency N] [--wait] [--recreate]
//	[--intra THREADS] [--inter THREADS] [--mode sequential|parallel] [--level disabled|basic|extended|all]
//	[--profile PREFIX] [--array] [--another MODEL]
//
// MODEL.json, which make_model.py writes, tells the inputs; every number of them is positive or 0. The sessions of all models
// are served at the same time.
// Prints {"ready":true,"pid":N} when the sessions exist, at the end one line with what it did. --wait: sessions are made
// first, the runs begin when a line comes on standard input. --recreate: release the sessions after the runs, make
// new ones, run again. --seconds: instead of a number of runs, until so much time has passed (0: until SIGTERM).
// --array: models are given as bytes, not as paths. --another: after the runs, make a session of this model, too, and run all again.
// --profile: ONNX Runtime writes its own profile of session N, counted from 0, into PREFIX-N_*.json, and the line has the
// times around each run, in ns of CLOCK_MONOTONIC.
import { createRequire } from 'node:module';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';

function options(args) {
	const result = {
		models: [], sessions: 1, runs: 200, seconds: null, rate: 0, concurrency: 1,
		intra: 1, inter: 1, mode: 'sequential', level: 'all', profile: '', another: '',
	};
	const switches = new Set(['wait', 'recreate', 'array']);
	while (args.length) {
		const word = args.shift(), name = word.slice(2);
		if (!word.startsWith('--'))
			result.models.push(word);
		else if (switches.has(name))
			result[name] = true;
		else if (name in result && args.length)
			result[name] = typeof result[name] === 'string' ? args.shift() : Number(args.shift());
		else
			throw new Error(`bad option ${word}`);
	}
	if (!result.models.length)
		throw new Error('no model');
	return result;
}

// The package lies in build/npm, not beside this script: XPUTRACE_NPM says where.
function runtime() {
	const folder = process.env.XPUTRACE_NPM ?? path.join(process.cwd(), 'build/npm');
	return createRequire(path.join(folder, 'package.json'))('onnxruntime-node');
}

function feeds(model) {
	const described = JSON.parse(readFileSync(`${model}.json`)).inputs;
	return Object.fromEntries(described.map(({ name, shape }) => {
		const count = shape.reduce((product, size) => product * size, 1);
		return [name, new ort.Tensor('float32', Float32Array.from({ length: count }, (_, i) => (i % 64) / 64), shape)];
	}));
}

const settings = options(process.argv.slice(2));
const ort = runtime();
const statistics = [];
const times = [];
let stopped = false;
let created = 0;
process.on('SIGTERM', () => { stopped = true; });

async function sessionsCreate(models = settings.models) {
	const made = [];
	for (const model of models) {
		const inputs = feeds(model), given = settings.array ? readFileSync(model) : model;
		for (let i = 0; i < settings.sessions; i++)
			made.push({ model, inputs, session: await ort.InferenceSession.create(given, {
				intraOpNumThreads: settings.intra, interOpNumThreads: settings.inter,
				executionMode: settings.mode, graphOptimizationLevel: settings.level,
				...settings.profile && {
					enableProfiling: true, profileFilePrefix: `${settings.profile}-${created++}`,
				},
			}) });
	}
	return made;
}

async function sessionsRelease(made) {
	for (const { session } of made) {
		if (settings.profile)
			session.endProfiling();
		await session.release();
	}
}

async function measure({ session, inputs }, statistic) {
	const start = process.hrtime.bigint();
	await session.run(inputs);
	const end = process.hrtime.bigint();
	statistic.runs++;
	statistic.total_us += Number(end - start) / 1000;
	if (settings.profile)
		times.push([String(start), String(end)]);
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
		const statistic = { model: session.model, runs: 0, total_us: 0 };
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
if (settings.another) {
	sessions.push(...await sessionsCreate([settings.another]));
	await round(sessions);
}
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
	...(settings.profile ? { times } : {}),
	sessions: statistics.map((one) => ({ model: one.model, runs: one.runs, mean_us: one.total_us / one.runs })),
}));
