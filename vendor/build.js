// Makes the two scripts that a browser loads: gateway/console/vendor.js from the packages of other projects, and console.js
// from the modules of gateway/console/modules. Beside each lies a record: what it was made of and by, with checksums.
// `node vendor/build.js --check` writes nothing, and ends with 1 when a file is not what it would write.
import { createHash } from "node:crypto";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const here = new URL("./", import.meta.url);
const console_folder = new URL("../gateway/console/", here);
const modules_folder = new URL("modules/", console_folder);
const lock = JSON.parse(await readFile(new URL("package-lock.json", here), "utf8"));
const made_by = `esbuild ${lock.packages["node_modules/esbuild"].version}`;

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const as_json = (value) => `${JSON.stringify(value, null, 2)}\n`;

function joined(options) {
  return build({
    bundle: true,
    charset: "utf8",
    format: "esm",
    legalComments: "none",
    metafile: true,
    minify: true,
    target: "es2022",
    write: false,
    ...options,
  });
}

/** The packages of which anything is in the file: `node_modules/a/b.js` belongs to `a`, `node_modules/@a/b/c.js` to `@a/b`. */
function packages_inside(made) {
  const inputs = Object.keys(made.metafile.outputs["entry.js"]?.inputs ?? made.metafile.inputs);
  const names = inputs.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  return [...new Set(names.filter(Boolean))].sort();
}

async function licence_text(name) {
  const folder = new URL(`node_modules/${name}/`, here);
  const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
  return (await readFile(new URL(file, folder), "utf8")).trim();
}

async function vendor_files() {
  const made = await joined({ absWorkingDir: here.pathname, entryPoints: ["entry.js"] });
  const script = made.outputFiles[0].contents;
  const packages = [];
  const texts = [];
  for (const name of packages_inside(made)) {
    const { version, license, integrity } = lock.packages[`node_modules/${name}`];
    packages.push({ name, version, licence: license, integrity });
    texts.push(`${name} ${version} (${license})\n\n${await licence_text(name)}\n`);
  }
  return {
    "vendor.js": script,
    "vendor.json": as_json({ file: "vendor.js", sha256: sha256(script), made_by, packages }),
    "vendor-licences.txt": texts.join(`\n${"-".repeat(80)}\n\n`),
  };
}

/** It imports vendor.js, which lies beside it, as the modules do from the folder above theirs. */
const beside = {
  name: "beside",
  setup: ({ onResolve }) => onResolve({ filter: /\/vendor\.js$/ }, () => ({ path: "./vendor.js", external: true })),
};

async function console_files() {
  const made = await joined({
    absWorkingDir: modules_folder.pathname,
    banner: { js: "// Made of the modules in gateway/console/modules by `make console`: see console.json." },
    entryPoints: ["app.js"],
    plugins: [beside],
  });
  const script = made.outputFiles[0].contents;
  const modules = {};
  for (const name of (await readdir(modules_folder)).sort()) {
    modules[name] = sha256(await readFile(new URL(name, modules_folder)));
  }
  return {
    "console.js": script,
    "console.json": as_json({ file: "console.js", sha256: sha256(script), made_by, modules }),
  };
}

const files = { ...(await vendor_files()), ...(await console_files()) };
const is_check = process.argv.includes("--check");
for (const [name, content] of Object.entries(files)) {
  const path = new URL(name, console_folder);
  const is_same = Buffer.from(content).equals(await readFile(path).catch(() => Buffer.alloc(0)));
  if (is_same) continue;
  if (is_check) process.exitCode = 1;
  else await writeFile(path, content);
  console.log(`${name}: ${is_check ? "is not what the build makes" : `${content.length} bytes`}`);
}
