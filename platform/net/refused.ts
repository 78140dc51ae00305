/** Connecting is out of the question, and trying again changes nothing; the message is for people. */
export class ConnectionRefused extends Error {
  override readonly name = "ConnectionRefused";
}
