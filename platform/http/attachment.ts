/** Content-Disposition header (RFC 6266) that makes a browser save a file under its own name. */
export function attachmentOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const plain = name.replaceAll(/[^A-Za-z0-9._-]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
