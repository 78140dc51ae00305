/**
 * A host name or an IP address. Characters that a shell, an option parser or a log could misread
 * are excluded.
 */
export const HOST_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$|^[0-9A-Fa-f:.]{2,45}$/;
