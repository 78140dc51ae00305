/** Where a stack tells people what it is doing. */
export type Say = (line: string) => void;

export const sayOnStderr: Say = (line) => {
  process.stderr.write(`${line}\n`);
};

export const saySilently: Say = () => undefined;
