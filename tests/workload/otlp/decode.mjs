// SPDX-License-Identifier: BSD-2-Clause
// decode.mjs metrics|trace ROOT FILE...: bodies of requests as OpenTelemetry's own messages for JavaScript read them, one line of JSON each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [signal, root, ...files] = process.argv.slice(2);
const { opentelemetry } = createRequire(import.meta.url)(root);
const name = { metrics: "ExportMetricsServiceRequest", trace: "ExportTraceServiceRequest" }[signal];
const Request = opentelemetry.proto.collector[signal].v1[name];

for (const file of files) {
  const bytes = readFileSync(file);
  const request = Request.decode(bytes);
  // Fields that the messages do not have are left out when it is encoded again.
  const again = Request.encode(request).finish();
  if (again.length !== bytes.length)
    throw new Error(`${file}: ${bytes.length} bytes, of which ${again.length} are known`);
  console.log(JSON.stringify(Request.toObject(request, { longs: String, bytes: String, arrays: true })));
}
