/** Prints a progress message for people. */
export type Say = (line: string) => void;

export const sayOnStderr: Say = (line) => {
  process.stderr.write(`${line}\n`);
};

export const saySilently: Say = () => undefined;
