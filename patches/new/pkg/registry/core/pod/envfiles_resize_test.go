package pod

func init() { resizeStrategy = ResizeStrategy }
