import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

interface Certificate {
  cert: string;
  key: string;
}

const openssl = (...args: string[]): unknown => execFileSync("openssl", args, { stdio: "pipe" });

const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];

/** A certificate authority for one test, with its files in the given folder. */
export class CertificateAuthority implements Certificate {
  readonly cert: string;
  readonly key: string;

  constructor(
    private readonly folder: string,
    private readonly name: string,
  ) {
    this.cert = join(folder, `${name}.crt`);
    this.key = join(folder, `${name}.key`);
    openssl("req", "-x509", ...EC, ...this.out(this), "-subj", `/CN=${name}`);
  }

  /** Issues a certificate for these subject alternative names, e.g. `DNS:localhost`. */
  issue(name: string, names: string): Certificate {
    const base = join(this.folder, `${this.name}-${name}`);
    const made = { cert: `${base}.crt`, key: `${base}.key` };
    const extensions = `${base}.ext`;
    writeFileSync(extensions, `subjectAltName=${names}\n`);
    openssl("req", ...EC, "-keyout", made.key, "-out", `${base}.csr`, "-subj", `/CN=${name}`);
    openssl(
      ...["x509", "-req", "-in", `${base}.csr`, "-CA", this.cert, "-CAkey", this.key],
      ...["-CAcreateserial", "-days", "2", "-out", made.cert, "-extfile", extensions],
    );
    return made;
  }

  private readonly out = ({ cert, key }: Certificate): string[] => ["-keyout", key, "-out", cert];
}
