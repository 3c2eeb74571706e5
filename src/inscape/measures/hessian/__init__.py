"""The Hessian of a loss in the parameters of a torch module: its products and its largest eigenvalues."""
