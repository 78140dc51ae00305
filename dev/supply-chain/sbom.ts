import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { checkoutRoot } from "../stack/paths";
import { sayOnStderr as say } from "../stack/say";
import { pythonPackages } from "./licences";

interface Component {
  "bom-ref": string;
  [field: string]: unknown;
}

interface Bom {
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn?: string[] }[];
  [field: string]: unknown;
}

const pythonComponents = (): Component[] =>
  pythonPackages().map(({ name, version, licence }) => {
    const purl = `pkg:pypi/${name}@${version}`;
    const licences = licence ? { licenses: [{ expression: licence }] } : {};
    return { "bom-ref": purl, type: "library", name, version, purl, ...licences };
  });

/**
 * Adds Python packages to npm's CycloneDX document, which lists the server's packages. The Python
 * packages are those of workers and the SDK, from the lock files. All Python packages get the scope
 * "optional", because they are not installed with the server.
 */
export function mergeBom(npm: Bom): Bom {
  const python = pythonComponents().map((each) => ({ ...each, scope: "optional" }));
  const { component } = npm.metadata;
  return {
    ...npm,
    // npm uses the name of the checkout's folder as the component's name. Replace this name.
    metadata: { ...npm.metadata, component: { ...component, name: "forge" } },
    components: [...npm.components, ...python],
    dependencies: [...npm.dependencies, ...python.map((each) => ({ ref: each["bom-ref"] }))],
  };
}

/** `npm run sbom [-- FILE]`: writes the SBOM to FILE, or to stdout. Needs no network. */
function main(): void {
  const [file] = process.argv.slice(2);
  const output = execFileSync("npm", ["sbom", "--sbom-format=cyclonedx", "--omit=dev"], {
    cwd: checkoutRoot(),
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const bom = `${JSON.stringify(mergeBom(JSON.parse(output) as Bom), null, 2)}\n`;
  if (file === undefined) process.stdout.write(bom);
  else {
    writeFileSync(file, bom);
    say(`wrote ${file}`);
  }
}

if (require.main === module) main();
