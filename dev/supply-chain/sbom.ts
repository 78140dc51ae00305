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
 * Adds the Python packages of workers and the SDK, from the locks, to npm's CycloneDX document of
 * the server's packages. Their scope is "optional", because they are not installed with the server.
 */
export function mergeBom(npm: Bom): Bom {
  const python = pythonComponents().map((each) => ({ ...each, scope: "optional" }));
  const { component } = npm.metadata;
  return {
    ...npm,
    // Replaces npm's name for the component, which is the name of the checkout's folder.
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
