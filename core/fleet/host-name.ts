/** A host name or an IP address: nothing that a shell, an option parser or a log could misread. */
export const HOST_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$|^[0-9A-Fa-f:.]{2,45}$/;
