/** Connects a simulation to the process it runs in. */
export function rejections(report: (error: unknown) => void): () => void {
  process.on("unhandledRejection", report);
  return () => process.off("unhandledRejection", report);
}
