/** Connecting is out of the question, and trying again changes nothing; the message is for people. */
export class SshRefused extends Error {
  override readonly name = "SshRefused";
}
