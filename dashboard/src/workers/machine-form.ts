import type { Machine } from "@forge/sdk";
import { commaSeparated } from "../ui/format";

export const START = {
  ssh_host: "",
  ssh_user: "root",
  ssh_port: "",
  ssh_key_path: "",
  ssh_host_key: "",
  gpu_count: "1",
  gpu_type: "",
  worker_id: "",
  tags: "",
  provider: "",
};

export type FormValues = typeof START;

interface FormField {
  name: keyof FormValues;
  label: string;
  hint?: string;
  required?: boolean;
  type?: "number";
  min?: number;
  max?: number;
  placeholder?: string;
}

export const FIELDS: readonly FormField[] = [
  { name: "ssh_host", label: "Host", required: true, placeholder: "gpu-1.example.org" },
  {
    name: "ssh_user",
    label: "User",
    required: true,
    hint: "root, or one with sudo without a password",
  },
  { name: "gpu_count", label: "GPUs", required: true, type: "number", min: 0, max: 64 },
  { name: "gpu_type", label: "GPU type", required: true, placeholder: "A100 80GB" },
  { name: "ssh_port", label: "Port", type: "number", min: 1, max: 65_535, placeholder: "22" },
  {
    name: "ssh_key_path",
    label: "Key file",
    placeholder: "id_ed25519",
    hint: "in the directory of your SSH keys on the server",
  },
  {
    name: "ssh_host_key",
    label: "Host key",
    placeholder: "SHA256:…",
    hint: "without it, the first key that the host shows is trusted and kept",
  },
  { name: "worker_id", label: "Worker id", hint: "without it, one is made" },
  { name: "tags", label: "Tags", placeholder: "eu, spot", hint: "separated by commas" },
  { name: "provider", label: "Provider" },
];

/** Converts the form's values to a request. Empty values are left out. */
export function machineOf(values: FormValues): Machine {
  const tags = commaSeparated(values.tags);
  return {
    gpu_count: Number(values.gpu_count),
    gpu_type: values.gpu_type,
    ...(values.ssh_port ? { ssh_port: Number(values.ssh_port) } : {}),
    ...(values.ssh_key_path ? { ssh_key_path: values.ssh_key_path } : {}),
    ...(values.ssh_host_key ? { ssh_host_key: values.ssh_host_key } : {}),
    ...(values.worker_id ? { worker_id: values.worker_id } : {}),
    ...(values.provider ? { provider: values.provider } : {}),
    ...(tags.length > 0 ? { tags } : {}),
  };
}
