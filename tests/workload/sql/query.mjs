// SPDX-License-Identifier: BSD-2-Clause
// query.mjs duckdb|clickhouse ROOT STATEMENT...: runs statements one after the other in one new database; ROOT/node_modules has the
// engine. Prints a line of JSON each: rows, as arrays; {"error": TEXT} for one that has failed.
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [engine, root, ...statements] = process.argv.slice(2);
const load = createRequire(join(root, "package.json"));

async function duckdb() {
  const connection = await (await load("@duckdb/node-api").DuckDBInstance.create(":memory:")).connect();
  await connection.run("SET autoinstall_known_extensions = false");
  return { rows: async (text) => JSON.stringify((await connection.runAndReadAll(text)).getRowsJson()) };
}

async function clickhouse() {
  const folder = mkdtempSync(join(tmpdir(), "xputrace-clickhouse-"));
  const session = new (load("chdb").Session)(folder);
  return {
    // Not parsed: numbers of 64 bits are not those of JavaScript. A row is a line.
    rows: async (text) => `[${session.query(text, "JSONCompactEachRow").trim().replaceAll("\n", ",")}]`,
    close: () => {
      session.cleanup();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const database = await { duckdb, clickhouse }[engine]();
for (const text of statements) {
  try {
    console.log(await database.rows(text));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
database.close?.();
