// Makes gateway/console/vendor.js, and beside it vendor.json (versions, licences, checksums) and the licences' texts.
import { createHash } from "node:crypto";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const here = new URL("./", import.meta.url);
const console_folder = new URL("../gateway/console/", here);
const lock = JSON.parse(await readFile(new URL("package-lock.json", here), "utf8"));

const made = await build({
  absWorkingDir: here.pathname,
  bundle: true,
  entryPoints: ["entry.js"],
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});
const script = made.outputFiles[0].contents;

/** The packages of which anything is in the file: `node_modules/a/b.js` belongs to `a`, `node_modules/@a/b/c.js` to `@a/b`. */
function packages_inside() {
  const inputs = Object.keys(made.metafile.outputs["entry.js"]?.inputs ?? made.metafile.inputs);
  const names = inputs.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  return [...new Set(names.filter(Boolean))].sort();
}

async function licence_text(name) {
  const folder = new URL(`node_modules/${name}/`, here);
  const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
  return (await readFile(new URL(file, folder), "utf8")).trim();
}

const packages = [];
const texts = [];
for (const name of packages_inside()) {
  const { version, license, integrity } = lock.packages[`node_modules/${name}`];
  packages.push({ name, version, licence: license, integrity });
  texts.push(`${name} ${version} (${license})\n\n${await licence_text(name)}\n`);
}
const esbuild = lock.packages["node_modules/esbuild"].version;
const sha256 = createHash("sha256").update(script).digest("hex");

await writeFile(new URL("vendor.js", console_folder), script);
await writeFile(
  new URL("vendor.json", console_folder),
  JSON.stringify({ file: "vendor.js", sha256, made_by: `esbuild ${esbuild}`, packages }, null, 2) + "\n",
);
await writeFile(new URL("vendor-licences.txt", console_folder), texts.join(`\n${"-".repeat(80)}\n\n`));
console.log(
  `vendor.js: ${script.length} bytes of ${packages.map((each) => `${each.name} ${each.version}`).join(", ")}`,
);
