import { type Machine, suffices } from "./memory-folder";

const machine: Machine = {
  kernel: "6.18.44-generic",
  mounts: "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,relatime 0 0\n",
  freeBytes: 9 * 1024 ** 3,
};

test.each<[string, Partial<Machine>, boolean]>([
  ["a usual machine", {}, true],
  ["a machine with an old kernel", { kernel: "6.5.0-15-generic" }, false],
  ["a machine with an older kernel", { kernel: "5.15.0" }, false],
  ["a later major release", { kernel: "7.0.1" }, true],
  ["a container with little shared memory", { freeBytes: 64 * 1024 ** 2 }, false],
  ["a folder without programs", { mounts: "shm /dev/shm tmpfs rw,noexec 0 0\n" }, false],
  ["a folder mounted again", { mounts: `${machine.mounts}a /dev/shm tmpfs ro 0 0\n` }, false],
  ["a machine without the folder", { mounts: "/dev/vda / ext4 rw 0 0\n" }, false],
])("a folder in memory: %s", (_, differs, expected) => {
  expect(suffices({ ...machine, ...differs })).toBe(expected);
});
