import type { Sha256 } from "./platform.ts";

const BLOCK = 64;

/**
 * Computes constants of SHA-256: for each of the first 64 primes, the first 32 bits of the
 * fractional part of the prime's square root (`power` = 1/2) or cube root (`power` = 1/3).
 */
const rootBits = (power: number): number[] =>
  PRIMES.map((prime) => ((prime ** power % 1) * 2 ** 32) | 0);

const PRIMES = Array.from({ length: 312 }, (_, n) => n).filter(
  (n) => n > 1 && !Array.from({ length: n }, (_, d) => d).some((d) => d > 1 && n % d === 0),
);
const CONSTANTS = new Int32Array(rootBits(1 / 3));
const START = rootBits(1 / 2).slice(0, 8);

/**
 * SHA-256 (FIPS 180-4) in plain JavaScript. A browser's own implementation exists only in secure
 * contexts (mostly HTTPS), and needs all bytes at once, which is too much for a large dataset.
 */
export class JsSha256 implements Sha256 {
  readonly #state = new Int32Array(START);
  readonly #schedule = new Int32Array(64);
  readonly #rest = new Uint8Array(BLOCK);
  #restLength = 0;
  #length = 0;

  update(bytes: Uint8Array): void {
    this.#length += bytes.length;
    let at = 0;
    if (this.#restLength > 0) {
      at = Math.min(BLOCK - this.#restLength, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#restLength);
      this.#restLength += at;
      if (this.#restLength < BLOCK) return;
      this.#compress(this.#rest, 0);
      this.#restLength = 0;
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) this.#compress(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#restLength = bytes.length - at;
  }

  hex(): string {
    const length = this.#length;
    const zeros = (BLOCK * 2 - 9 - (length % BLOCK)) % BLOCK;
    const end = new Uint8Array(1 + zeros + 8);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(1 + zeros, Math.floor(length / 2 ** 29));
    view.setUint32(5 + zeros, (length * 8) >>> 0);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(bytes: Uint8Array, at: number): void {
    const words = this.#schedule;
    const word = (n: number): number => words[n] ?? 0;
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, BLOCK);
    for (let n = 0; n < 16; n++) words[n] = view.getInt32(n * 4);
    for (let n = 16; n < 64; n++) {
      const [x, y] = [word(n - 15), word(n - 2)];
      const low = turned(x, 7) ^ turned(x, 18) ^ (x >>> 3);
      const high = turned(y, 17) ^ turned(y, 19) ^ (y >>> 10);
      words[n] = (word(n - 16) + low + word(n - 7) + high) | 0;
    }
    let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = this.#state;
    for (let n = 0; n < 64; n++) {
      const choice = (e & f) ^ (~e & g);
      const majority = (a & b) ^ (a & c) ^ (b & c);
      const sum1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const sum0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const next = (h + sum1 + choice + (CONSTANTS[n] ?? 0) + word(n)) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + next) | 0;
      d = c;
      c = b;
      b = a;
      a = (next + sum0 + majority) | 0;
    }
    for (const [n, value] of [a, b, c, d, e, f, g, h].entries()) {
      this.#state[n] = ((this.#state[n] ?? 0) + value) | 0;
    }
  }
}

const turned = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));
