/** The connection is not allowed. A retry does not help. The message is shown to users. */
export class ConnectionRefused extends Error {
  override readonly name = "ConnectionRefused";
}
